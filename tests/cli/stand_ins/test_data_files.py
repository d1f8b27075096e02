"""The flags of text files, and what contradicts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2t_repro.cli.main import main
from tests.cli.stand_ins.conftest import paths_of


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
