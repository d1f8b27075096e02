from __future__ import annotations

import dataclasses

from t2t_repro.features.reproduction.paper_tables import Row, find_row
from t2t_repro.features.reproduction.row_plan import plan_of


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
