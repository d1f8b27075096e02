"""Score existing translations from the command line, with and without a card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from t2t_repro.cli.main import main

SOURCES = ["The cat sleeps .", "A dog runs fast .", "We see the old house ."]
REFERENCES = ["Die Katze schläft .", "Ein Hund läuft schnell .", "Wir sehen das Haus ."]
HYPOTHESES = ["Die Katze schläft .", "A dog runs fast .", "Wir sehen ein Haus ."]


@pytest.fixture
def files(tmp_path) -> dict[str, str]:
    """Write the three texts, and return the flags that name them."""
    texts = {"source": SOURCES, "reference": REFERENCES, "hypothesis": HYPOTHESES}
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {f"--{name}": str(tmp_path / name) for name in texts}


def evaluate(*flags: str, **named: str) -> int:
    return main(["evaluate", *(x for pair in named.items() for x in pair), *flags])


def test_a_card_of_existing_translations_counts_copies_of_the_source(files, capsys):
    assert evaluate("--card", "json", **files) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["hypothesis"] == files["--hypothesis"]
    assert report["card"]["sentences"] == 3
    assert report["card"]["faults"]["copies"] == 1


def test_the_card_names_the_file_in_its_title(files, capsys):
    assert evaluate("--card", **files) == 0
    title = capsys.readouterr().out.splitlines()[0]
    assert title == f"Score card: {files['--hypothesis']}"


def test_a_source_without_a_card_has_no_effect_and_is_refused(files, capsys):
    assert evaluate(**files) == 2
    assert "only a score card reads the source" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--reference", "--source"])
def test_unequal_numbers_of_lines_are_named(files, capsys, flag):
    Path(files[flag]).write_text("one line\n", encoding="utf-8")
    assert evaluate("--card", **files) == 1
    error = capsys.readouterr().err
    assert f"received 3 lines in {files['--hypothesis']}" in error
    assert f"1 in {files[flag]}" in error
