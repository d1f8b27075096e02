from __future__ import annotations

import json

import pytest

from t2t_repro.cli.main import main


@pytest.fixture
def files(tmp_path):
    lines = [f"line {number} of many lines ." for number in range(30)]
    texts = {"reference": lines, "base": lines[:20] + ["no ."] * 10, "better": lines}
    for name, own in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in own))
    return {name: str(tmp_path / name) for name in texts}


def test_the_answer_is_a_list_in_json(files, capsys):
    command = ["compare", files["base"], files["better"]]
    assert main([*command, "--reference", files["reference"], "--samples", "100"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [c["system"] for c in found[:2]] == [files["base"], files["better"]]
    assert found[1]["score"] == pytest.approx(100)
    assert found[1]["p_value"] < 0.05


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
    assert capsys.readouterr().out.startswith("system ")
    assert main([*command, "--format", "json"]) == 0
    assert capsys.readouterr().out.startswith("[")


def test_a_missing_file_is_named(files, capsys):
    command = ["compare", files["base"], "nowhere", "--reference", files["reference"]]
    assert main(command) == 1
    assert "nowhere" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("form", "first"), [("text", "system"), ("markdown", "| system |"), ("json", "[")]
)
def test_the_form_can_be_chosen(files, capsys, form, first):
    command = ["compare", files["base"], files["better"], "--samples", "100"]
    command += ["--reference", files["reference"], "--format", form]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(first)
    assert form != "text" or max(map(len, lines[:3])) <= 100


def test_an_unknown_form_is_refused(files, capsys):
    command = ["compare", files["base"], files["better"], "--format", "xml"]
    assert main([*command, "--reference", files["reference"]]) == 2
    assert "json, text, markdown" in capsys.readouterr().err.replace("'", "")


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
