from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.reproduction.paper_tables import Row, find_row
from t2t_repro.features.reproduction.row_plan import RunFolders, check_folders, plan_of


def plan(row, *args):
    return plan_of(*find_row(row), *args)


def test_a_plan_has_the_recipe_of_its_scale():
    small, paper = plan("table3/a_h1", "small", 4), plan("table3/a_h1", "paper")
    assert (small.scale, small.seed, paper.scale, paper.seed) == (
        *("small", 4),
        *("paper", 1),
    )
    assert small.recipe.problem == "text_pairs"
    assert paper.recipe.problem == "translate_ende_wmt14"
    assert plan("table3/a_h1").scale == "small"
    long = plan("table3/a_h1", "long")
    assert (long.scale, long.recipe.train_steps) == ("long", 10_000)


def test_a_row_is_scored_alone_unless_others_share_its_training():
    assert [row.name for row in plan("table3/a_h1").rows] == ["a_h1"]
    rows = plan("randomisation/uniform").rows
    assert [row.name for row in rows] == ["learned", "random", "uniform"]
    other = Row("other", "label", {}, hparams_set="weighted_transformer_n4")
    table, row = find_row("randomisation/random")
    table = dataclasses.replace(table, rows=[*table.rows, other])
    assert plan_of(table, row).rows == rows


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ("table2/bytenet", "table2/bytenet is published only"),
        ("table1/recurrent", "`t2t reproduce table1/recurrent` measures it"),
    ],
)
def test_a_row_that_cannot_be_trained_is_refused(row, answer):
    with pytest.raises(UsageError, match=answer):
        plan(row)


def test_missing_text_and_an_unwritable_folder_of_results_are_refused(tmp_path):
    small, paper = plan("table3/a_h1"), plan("table3/a_h1", "paper")
    places = {"data_dir": Path("d"), "output_dir": Path("o")}
    with pytest.raises(UsageError, match="text_dir is missing: scale=small"):
        check_folders(small, RunFolders(**places))
    check_folders(paper, RunFolders(**places))
    check_folders(small, RunFolders(**places, text_dir=tmp_path, result_dir=tmp_path))
    nowhere = RunFolders(**places, text_dir=tmp_path, result_dir=tmp_path / "nowhere")
    with pytest.raises(UserError, match="nowhere, expected an existing folder"):
        check_folders(small, nowhere)
