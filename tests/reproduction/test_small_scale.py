from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UsageError, UserError
from t2t_repro.reproduction import small_scale
from t2t_repro.reproduction.tables import TABLES, table

OWN = sorted(
    {
        row.hparams_set
        for each in TABLES
        for row in each.rows
        if row.hparams_set and each.task == "translation"
    }
)


def test_widths_are_a_quarter_and_layers_half():
    base = small_scale.scaled(catalogue.hparams("transformer_base"))
    assert (base.hidden_size, base.filter_size, base.num_hidden_layers) == (128, 512, 3)
    assert (base.num_heads, base.layer_prepostprocess_dropout) == (8, 0.1)
    row = small_scale.scaled(catalogue.hparams("transformer_base_b_dk16"))
    assert row.attention_key_channels == 8 * 4


@pytest.mark.parametrize("name", OWN)
def test_every_row_differs_from_the_base_as_at_full_size(name):
    """The same settings differ, whatever their values."""
    base, row = catalogue.hparams("transformer_base"), catalogue.hparams(name)
    small = small_scale.scaled(base).diff(small_scale.scaled(row))
    same_for_all = {"max_length", "learning_rate_constant", "batch_size"}
    own = {"learning_rate_warmup_steps", "branch_learning_rate_warmup_steps"}
    assert set(small) - own == set(base.diff(row)) - same_for_all - own


@pytest.mark.parametrize("name", OWN)
def test_the_overrides_say_what_the_scale_changes(name):
    hparams = catalogue.hparams(name)
    assert hparams.parse(small_scale.overrides(hparams)) == small_scale.scaled(hparams)


def test_a_row_without_its_text_is_refused():
    table4 = table("table4")
    row = table4.row("transformer_4_layers_semi_supervised")
    with pytest.raises(UsageError, match="17 million sentences"):
        small_scale.recipe_of(table4, row, catalogue.hparams(row.hparams_set))


def test_text_that_is_not_there_is_a_users_error(tmp_path):
    (tmp_path / "train.en").write_text("a\n")
    with pytest.raises(UserError, match=r"train\.de is missing"):
        small_scale.TRANSLATION.text_digests(tmp_path)
