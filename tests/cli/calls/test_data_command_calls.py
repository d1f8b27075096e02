"""Every flag of data reaches its preparation; all values differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2t_repro.cli.main import main
from t2t_repro.data import prepare as prepare_module
from tests.cli.calls.conftest import SETTINGS, data_flags, files_of, paths_of
from tests.support.recorder import record


def test_datagen_prepares_with_every_flag(stage, monkeypatch, capsys):
    prepared = record(monkeypatch, prepare_module, "prepare", "the data")
    from t2t_repro.cli import datagen

    monkeypatch.setattr(datagen, "summary_lines", lambda data: [f"counts of {data}"])
    assert main(["datagen", *data_flags(stage)]) == 0
    call = prepared.call
    problem = call.pop("problem")
    assert (problem.name, paths_of(problem)) == ("text_pairs", files_of(stage))
    settings = call.pop("settings")
    assert settings.values() == SETTINGS
    assert Path(call["data_dir"]) == stage.folder / "other_data"
    assert Path(call["tmp_dir"]) == stage.folder / "tmp"
    assert capsys.readouterr().out == "counts of the data\n"
    assert {"usr_dir": stage.package} in stage.catalogue.calls


def test_without_a_folder_for_downloads_the_source_chooses_its_own(stage, monkeypatch):
    prepared = record(monkeypatch, prepare_module, "prepare", "the data")
    from t2t_repro.cli import datagen

    monkeypatch.setattr(datagen, "summary_lines", lambda data: [])
    data_dir = stage.folder / "other_data"
    flags = ["--problem", "algorithmic_sort", "--data_dir", str(data_dir)]
    assert main(["datagen", *flags]) == 0
    call = prepared.call
    assert (call["data_dir"], call["tmp_dir"]) == (data_dir, None)


def test_datagen_needs_a_folder(stage, capsys):
    assert main(["datagen", "--problem", "algorithmic_sort"]) == 2
    assert "received no --data_dir" in capsys.readouterr().err


def request(*flags):
    """Return what the flags of data request."""
    from t2t_repro.cli.data_flags import add_data_flags, problem_and_settings
    from t2t_repro.cli.main import CommandParser

    parser = CommandParser()
    add_data_flags(parser)
    return problem_and_settings(parser.parse_args(flags))


def test_a_table_of_two_columns_is_one_file():
    problem, _ = request("--problem=text_pairs", "--train_tsv=a", "--dev_tsv=b")
    assert paths_of(problem) == {"train": (Path("a"), None), "dev": (Path("b"), None)}


def test_trees_are_files_of_the_parser():
    problem, _ = request("--problem=parsing_ptb", "--train_trees=a", "--test_trees=b")
    assert paths_of(problem) == {"train": (Path("a"),), "test": (Path("b"),)}


@pytest.mark.parametrize(
    ("flags", "answer"),
    [
        (["--train_source=a"], "received --train_source without --train_target"),
        (["--train_target=a"], "received --train_target without --train_source"),
        (["--train_tsv=a", "--train_source=b"], "received --train_tsv beside"),
        (["--train_tsv=a", "--train_target=b"], "received --train_tsv beside"),
        (["--train_trees=a", "--train_tsv=b"], "received --train_trees beside pairs"),
    ],
)
def test_files_that_contradict_each_other_are_refused(capsys, flags, answer):
    arguments = ["datagen", "--problem=text_pairs", "--data_dir=d", *flags]
    assert main(arguments) == 2
    assert answer in capsys.readouterr().err
