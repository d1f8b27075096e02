"""Score existing translations from the command line, with and without a card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sacrebleu

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


def test_a_perfect_score_is_100_in_json_and_the_equal_files_are_reported(files, capsys):
    del files["--source"]
    assert evaluate(**files | {"--hypothesis": files["--reference"]}) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["bleu"]["value"] == 100
    assert captured.out.count("100.0,") >= 2
    assert "have the same lines" in captured.err
    assert files["--reference"] in captured.err


def test_a_hypothesis_that_is_the_source_is_reported(files, capsys):
    assert evaluate("--card", **files | {"--hypothesis": files["--source"]}) == 0
    assert (
        f"--source {files['--source']} have the same lines" in capsys.readouterr().err
    )


def test_different_files_are_not_reported(files, capsys):
    assert evaluate("--card", **files) == 0
    assert "the same lines" not in capsys.readouterr().err


def test_several_references_score_as_in_sacrebleu(files, capsys, tmp_path):
    other = tmp_path / "other"
    other.write_text(
        "\n".join(HYPOTHESES[:1] + REFERENCES[1:]) + "\n", encoding="utf-8"
    )
    del files["--source"]
    flags = ["--hypothesis", files["--hypothesis"], "--reference"]
    assert main(["evaluate", *flags, files["--reference"], str(other)]) == 0
    report = json.loads(capsys.readouterr().out)
    streams = [REFERENCES, HYPOTHESES[:1] + REFERENCES[1:]]
    assert report["bleu"]["value"] == pytest.approx(
        sacrebleu.corpus_bleu(HYPOTHESES, streams).score, abs=1e-6
    )
    assert report["chrf"]["value"] == pytest.approx(
        sacrebleu.corpus_chrf(HYPOTHESES, streams).score, abs=1e-6
    )
    assert "nrefs:2" in report["bleu"]["signature"]
    assert report["reference"] == [files["--reference"], str(other)]
    card = ["evaluate", *flags, files["--reference"], str(other), "--card"]
    assert main(card) == 2
    assert "received 2 references and a score card" in capsys.readouterr().err


def test_every_reference_has_as_many_lines_as_the_hypotheses(files, capsys, tmp_path):
    short = tmp_path / "short"
    short.write_text("nur eine Zeile\n")
    flags = ["--hypothesis", files["--hypothesis"], "--reference"]
    assert main(["evaluate", *flags, files["--reference"], str(short)]) == 1
    assert f"1 in {short}" in capsys.readouterr().err


def test_the_tokenizer_can_be_chosen(files, capsys):
    del files["--source"]
    assert evaluate("--bleu_tokenizer", "char", **files) == 0
    assert "tok:char" in json.loads(capsys.readouterr().out)["bleu"]["signature"]


def test_a_terminal_gets_a_table(files, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    del files["--source"]
    assert evaluate(**files) == 0
    rows = capsys.readouterr().out.splitlines()
    score = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert rows[0].split()[:2] == ["BLEU", f"{score:.2f}"]
    assert rows[0].endswith("version:" + sacrebleu.__version__)
    assert ["sentences", "3"] in [row.split() for row in rows]
    assert rows[-1].split() == ["reference", files["--reference"]]


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
    assert (
        "which only a report reads: add --card or --card_html"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("flag", ["--reference", "--source"])
def test_unequal_numbers_of_lines_are_named(files, capsys, flag):
    Path(files[flag]).write_text("one line\n", encoding="utf-8")
    assert evaluate("--card", **files) == 1
    error = capsys.readouterr().err
    assert f"received 3 lines in {files['--hypothesis']}" in error
    assert f"1 in {files[flag]}" in error


def test_an_empty_reference_keeps_its_place(files, tmp_path, capsys):
    del files["--source"]
    lines = [HYPOTHESES[0], "", HYPOTHESES[2]]
    for flag in files.values():
        Path(flag).write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert evaluate(**files) == 0
    assert json.loads(capsys.readouterr().out)["bleu"]["value"] == 100
