from __future__ import annotations

import dataclasses

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UsageError
from t2t_repro.features.reproduction import recipes
from t2t_repro.features.reproduction.paper_tables import TABLES
from t2t_repro.features.reproduction.paper_tables import find_table as table
from t2t_repro.features.reproduction.recipes import Recipe

PAIRS = Recipe("p", 1, ("dev",), text={"train": ("a", "b"), "test": ("c", "d")})


def test_an_average_is_scored_alone_unless_systems_are_ranked():
    assert PAIRS.checkpoints == ("latest",)
    averaged = dataclasses.replace(PAIRS, average_last=5)
    assert averaged.checkpoints == ("averaged",)
    ranking = dataclasses.replace(averaged, ranks_systems=True)
    assert ranking.checkpoints == ("latest", "averaged")


OWN = sorted(
    {
        row.hparams_set
        for each in TABLES
        for row in each.rows
        if row.hparams_set and each.task == "translation"
    }
)


def recipe(name, scale="small"):
    table_name, _, row_name = name.partition("/")
    found = table(table_name)
    row = found.row(row_name)
    hparams = catalogue.hparams(row.hparams_set)
    return recipes.reduced_recipe(found, row, hparams, scale)


@pytest.mark.parametrize("scale", ["small", "long"])
@pytest.mark.parametrize("row", table("forms").rows, ids=lambda row: row.name)
def test_every_form_trains_with_exactly_its_changes(row, scale):
    found = recipe(f"forms/{row.name}", scale)
    hparams = catalogue.hparams(row.hparams_set)
    trained, unchanged = (
        hparams.parse(found.hparams),
        recipes.scaled(hparams, scale),
    )
    changed = {name for name, _ in (x.split("=") for x in row.hparams.split(",") if x)}
    idle = {"branch_learning_rate_warmup_steps", "branch_frozen_after_steps"}
    assert {*unchanged.diff(trained)} - idle == changed
    assert (row.name == "around_fixed") == (trained.branch_learning_rate_constant == 0)


@pytest.mark.parametrize("scale", ["small", "long"])
def test_a_translator_to_french_has_the_recipe_of_german_but_its_text(scale):
    french = recipe("enfr/weighted_transformer_large", scale)
    german = recipe("weighted/weighted_transformer_large", scale)
    assert french.text == {
        "train": ("train.en", "train.fr"),
        "dev": ("val.en", "val.fr"),
        "test": ("test2016.en", "test2016.fr"),
    }
    assert dataclasses.replace(french, text=german.text) == german


def test_the_semi_supervised_parser_differs_only_in_its_training_trees():
    gold = recipe("table4/transformer_4_layers_wsj_only")
    semi = recipe("table4/transformer_4_layers_semi_supervised")
    assert semi.text == {"train": ("craft.semi.mrg",), "dev": ("craft.dev.mrg",)}
    assert "silver trees" in semi.text_source
    changed = {"text": gold.text, "text_source": gold.text_source}
    assert dataclasses.replace(semi, **changed) == gold


def test_branch_weights_move_in_the_papers_share_of_the_training():
    """Map each set to the paper's steps and the step after which they are frozen."""
    paper = catalogue.hparams("weighted_transformer_base")
    share = paper.branch_frozen_after_steps / 60_000
    small = recipes.scaled(paper)
    assert small.branch_frozen_after_steps == round(2_500 * share) == 2_083
    assert small.branch_learning_rate_warmup_steps == 50
    # The paper's warm-up is a tenth of the other weights', too.
    assert paper.branch_learning_rate_warmup_steps == 400
    assert paper.learning_rate_warmup_steps == 4_000


WIDTHS = (
    *("hidden_size", "filter_size"),
    *("attention_key_channels", "attention_value_channels"),
    *("parameter_attention_key_channels", "parameter_attention_value_channels"),
)
DEPTHS = ("num_hidden_layers", "num_encoder_layers", "num_decoder_layers")


def test_widths_are_a_quarter_and_depths_a_half():
    widths = dict(zip(WIDTHS, range(800, 1000, 32), strict=False))
    depths = dict(zip(DEPTHS, (6, 8, 10), strict=True))
    full = catalogue.hparams("transformer_base").replace(**widths, **depths)
    small = recipes.scaled(full)
    for name in (*WIDTHS, *DEPTHS):
        divisor = 4 if name in WIDTHS else 2
        assert getattr(small, name) * divisor == getattr(full, name), name


@pytest.mark.parametrize("name", OWN)
def test_every_row_differs_from_the_base_as_at_full_size(name):
    """The same settings differ, with any values."""
    base, row = catalogue.hparams("transformer_base"), catalogue.hparams(name)
    small = recipes.scaled(base).diff(recipes.scaled(row))
    same_for_all = {"max_length", "learning_rate_constant", "batch_size"}
    own = {"learning_rate_warmup_steps", "branch_learning_rate_warmup_steps"}
    assert set(small) - own == set(base.diff(row)) - same_for_all - own
    assert row.parse(recipes.overrides(row)) == recipes.scaled(row)


def test_the_long_scale_peaks_at_one_thousandth():
    hparams = recipes.scaled(catalogue.hparams("transformer_base"), "long")
    width, warmup = hparams.hidden_size, hparams.learning_rate_warmup_steps
    assert hparams.learning_rate_constant * (width * warmup) ** -0.5 == pytest.approx(
        1e-3
    )


def test_a_parser_has_no_long_scale():
    with pytest.raises(UsageError, match="has no long scale"):
        recipe("table4/transformer_4_layers_wsj_only", "long")
