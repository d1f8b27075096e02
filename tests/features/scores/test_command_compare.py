from __future__ import annotations

import json

import pytest

from t2t_repro.cli.main import main
from t2t_repro.features.scores.command_compare import (
    comparison_lines,
    comparison_markdown,
)
from t2t_repro.features.scores.significance import Comparison


@pytest.fixture
def files(tmp_path):
    lines = [f"line {number} of many lines ." for number in range(30)]
    texts = {"reference": lines, "base": lines[:20] + ["no ."] * 10, "better": lines}
    for name, own in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in own))
    return {name: str(tmp_path / name) for name in texts}


def test_one_file_twice_is_refused(files, capsys):
    command = ["compare", files["base"], files["base"], "--reference"]
    assert main([*command, files["reference"]]) == 2
    assert "received one file twice" in capsys.readouterr().err


def test_a_system_that_is_the_reference_is_reported(files, capsys):
    command = ["compare", files["base"], files["better"], "--samples", "20"]
    assert main([*command, "--reference", files["reference"]]) == 0
    error = capsys.readouterr().err
    assert f"{files['better']} and --reference {files['reference']} have" in error
    assert files["base"] not in error


def test_several_references_count_as_in_sacrebleu(files, capsys):
    command = ["compare", files["base"], files["better"], "--samples", "20"]
    assert main([*command, "--reference", files["reference"], files["base"]]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [c["score"] for c in found] == [100, 100, 100, 100, 0, 0]
    assert [c["p_value"] for c in found if c["system"] == files["better"]] == [1, 1, 1]
    assert all("nrefs:2" in c["signature"] for c in found)


def test_a_terminal_gets_a_table_unless_another_form_is_asked_for(
    files, capsys, monkeypatch
):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    command = ["compare", files["base"], files["better"], "--samples", "20"]
    command += ["--reference", files["reference"]]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert text.startswith("system ")
    assert max(map(len, text.splitlines()[:3])) <= 100
    for form, first in {"text": text, "markdown": "| system |", "json": "["}.items():
        assert main([*command, "--format", form]) == 0
        assert capsys.readouterr().out.startswith(first)


def test_several_systems_are_each_compared_with_the_baseline(files, capsys, tmp_path):
    third = tmp_path / "third"
    third.write_text("no .\n" * 30)
    systems = [files["base"], files["better"], str(third)]
    flags = ["--reference", files["reference"], "--samples", "100"]
    assert main(["compare", *systems, *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(c["metric"], c["system"]) for c in found] == [
        (metric, system) for metric in ("BLEU", "chrF2", "TER") for system in systems
    ]
    assert [c["p_value"] is None for c in found] == [True, False, False] * 3
    assert found[1]["score"] == pytest.approx(100)
    assert found[1]["p_value"] < 0.05


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (b"", "received 0 translations"),
        (b"one line\n", "received 1 translation in"),
        ("caf\u00e9\n".encode("latin-1") * 30, "UTF-8"),
    ],
)
def test_files_that_cannot_be_compared_are_refused(
    files, capsys, tmp_path, content, answer
):
    wrong = tmp_path / "wrong"
    wrong.write_bytes(content)
    command = ["compare", files["base"], str(wrong), "--reference", files["reference"]]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert answer in error
    assert str(wrong) in error


def comparisons(*systems):
    """Return comparisons whose numbers all differ; the second system is better."""
    p_values = {0: None, 1: 0.0123, 2: 0.4567}
    return [
        Comparison(
            system=system,
            metric=metric,
            score=10.0 * row + column + 0.25,
            p_value=p_values[row],
            mean=90.0,
            confidence=row + column / 4 + 0.5,
            signature=f"signature of {metric}",
        )
        for column, metric in enumerate(("BLEU", "TER"))
        for row, system in enumerate(systems)
    ]


def test_every_number_is_in_its_row_and_column():
    assert comparison_lines(comparisons("base.de", "new.de", "other.de"))[:4] == [
        "system            BLEU        p           TER        p",
        "base.de    0.25 ± 0.50        -   1.25 ± 0.75        -",
        "new.de    10.25 ± 1.50  0.0123*  11.25 ± 1.75  0.0123*",
        "other.de  20.25 ± 2.50  0.4567   21.25 ± 2.75  0.4567",
    ]


def test_notes_name_the_baseline_and_all_signatures():
    text = "\n".join(comparison_lines(comparisons("base.de", "new.de")))
    assert "difference from base.de by chance; * p < 0.05" in text
    assert "BLEU: signature of BLEU" in text
    assert "TER: signature of TER" in text
    assert "A lower TER is better" in text


def test_several_comparisons_have_a_corrected_limit():
    assert "Bonferroni" not in "\n".join(comparison_lines(comparisons("a", "b")))
    lines = comparison_lines(comparisons("a", "b", "c"))
    assert any("2 comparisons: by Bonferroni, look for p < 0.0250" in x for x in lines)


def test_long_names_are_numbered_and_listed():
    long = "runs/a_long_name/of_a_folder/translations.de"
    lines = comparison_lines(comparisons("base.de", long))
    assert lines[1].startswith("[1] ")
    assert lines[2].startswith("[2] ")
    assert lines[4:6] == ["[1] base.de", f"[2] {long}"]
    assert max(map(len, lines)) <= 100


def test_markdown_has_the_same_cells_and_no_lost_stars():
    lines = comparison_markdown(comparisons("base|de", "new.de"))
    assert lines[:4] == [
        "| system | BLEU | p | TER | p |",
        "| --- | ---: | ---: | ---: | ---: |",
        r"| base\|de | 0.25 ± 0.50 | - | 1.25 ± 0.75 | - |",
        "| new.de | 10.25 ± 1.50 | 0.0123* | 11.25 ± 1.75 | 0.0123* |",
    ]
    assert any(r"\* p < 0.05" in line for line in lines)
