from __future__ import annotations

import dataclasses
from pathlib import Path

from t2t_repro.data.request import PairFiles, TreeFile
from t2t_repro.features.reproduction.recipes import Recipe

PAIRS = Recipe("p", 1, ("dev",), text={"train": ("a", "b"), "test": ("c", "d")})
TREES = Recipe("p", 1, ("dev",), text={"train": ("a",), "dev": ("b",)})


def test_an_average_is_scored_alone_unless_systems_are_ranked():
    assert PAIRS.checkpoints == ("latest",)
    averaged = dataclasses.replace(PAIRS, average_last=5)
    assert averaged.checkpoints == ("averaged",)
    ranking = dataclasses.replace(averaged, ranks_systems=True)
    assert ranking.checkpoints == ("latest", "averaged")


def test_pairs_have_a_flag_per_split_and_side():
    assert list(PAIRS.text_flags()) == [
        ("--train_source", "a"),
        ("--train_target", "b"),
        ("--test_source", "c"),
        ("--test_target", "d"),
    ]
    assert PAIRS.file_names == ["a", "b", "c", "d"]


def test_trees_have_a_flag_per_split():
    assert list(TREES.text_flags()) == [("--train_trees", "a"), ("--dev_trees", "b")]


def test_files_are_those_that_a_problem_reads():
    folder = Path("somewhere")
    assert PAIRS.text_files(folder) == {
        "train": PairFiles(folder / "a", folder / "b"),
        "test": PairFiles(folder / "c", folder / "d"),
    }
    assert TREES.text_files(folder) == {
        "train": TreeFile(folder / "a"),
        "dev": TreeFile(folder / "b"),
    }


def test_a_problem_with_its_own_text_needs_no_files():
    recipe = Recipe("p", 1, ("dev",))
    assert (list(recipe.text_flags()), recipe.text_files(Path())) == ([], {})
    assert recipe.text_digests(Path("nowhere")) == {}
