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


def test_a_missing_file_is_named(files, capsys):
    command = ["compare", files["base"], "nowhere", "--reference", files["reference"]]
    assert main(command) == 1
    assert "nowhere" in capsys.readouterr().err
