from __future__ import annotations

import pytest

from t2t_repro.errors import UsageError
from t2t_repro.features.reproduction import recipes
from t2t_repro.features.reproduction.paper_tables import find_table as table


@pytest.mark.parametrize(
    ("name", "hparams_set", "steps", "averaged", "seconds", "split"),
    [
        ("table3/a_h1", "transformer_base_a_h1", 100_000, 0, None, "dev"),
        (
            *("table2/transformer_big", "transformer_big", 300_000, 20),
            *(600, "test"),
        ),
        (
            *("weighted/transformer_small", "transformer_base", 100_000, 5),
            *(600, "test"),
        ),
        ("sensitivity/big", "weighted_transformer_big", 250_000, 0, None, "dev"),
        ("randomisation/uniform", "weighted_transformer_n2", 60_000, 0, None, "dev"),
    ],
)
def test_a_row_is_trained_on_wmt14_as_the_paper_says(
    name, hparams_set, steps, averaged, seconds, split
):
    table_name, _, row_name = name.partition("/")
    found = table(table_name)
    recipe = recipes.paper_recipe(found, found.row(row_name))
    assert recipe.problem == "translate_ende_wmt14"
    assert (recipe.hparams_set, recipe.hparams) == (hparams_set, "")
    assert (recipe.train_steps, recipe.average_last) == (steps, averaged)
    assert recipe.save_checkpoints_secs == seconds
    assert recipe.save_checkpoints_steps is None
    assert recipe.splits == (split,)
    assert (recipe.text, recipe.vocab_size) == ({}, None)


def test_a_row_without_steps_is_refused():
    table4 = table("table4")
    row = table4.row("transformer_4_layers_wsj_only")
    with pytest.raises(UsageError, match="does not give the number of training steps"):
        recipes.paper_recipe(table4, row)


def test_a_row_that_changes_its_set_has_its_changes():
    attention = table("attention")
    recipe = recipes.paper_recipe(attention, attention.row("additive_dk256"))
    assert recipe.hparams_set == "transformer_base"
    assert recipe.hparams == (
        "attention_compatibility=additive,attention_key_channels=2048"
    )


def test_a_translator_to_french_is_trained_on_french():
    enfr = table("enfr")
    recipe = recipes.paper_recipe(enfr, enfr.row("transformer_big"))
    assert recipe.problem == "translate_enfr_wmt14"
    assert recipe.hparams_set == "transformer_big_enfr"
