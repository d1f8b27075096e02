from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.models.estimates import parameter_count

BRANCHED = {
    "branched_attention": "split",
    "branch_residual": "shared",
    "branch_gain": "unit",
    "branch_weights_init": "near_uniform",
    "attention_dropout": 0.1,
}
# Set -> the plain set that it changes, and the differences.
WEIGHTED = {
    "weighted_transformer_base": (
        "transformer_base",
        {**BRANCHED, "branch_frozen_after_steps": 50_000},
    ),
    "weighted_transformer_big": (
        "transformer_big",
        {**BRANCHED, "branch_frozen_after_steps": 240_000},
    ),
    "weighted_transformer_n2": (
        "transformer_base_c_n2",
        {**BRANCHED, "branch_frozen_after_steps": 50_000},
    ),
    "weighted_transformer_n4": (
        "transformer_base_c_n4",
        {**BRANCHED, "branch_frozen_after_steps": 50_000},
    ),
    "weighted_transformer_n8": (
        "transformer_base_c_n8",
        {
            **BRANCHED,
            "branch_frozen_after_steps": 50_000,
            "layer_prepostprocess_dropout": 0.3,
        },
    ),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_a_set_is_the_plain_one_with_its_branches(name):
    plain, expected = WEIGHTED[name]
    changes = catalogue.hparams(plain).diff(catalogue.hparams(name))
    assert {key: value for key, (_, value) in changes.items()} == expected


@pytest.mark.parametrize(
    ("name", "branch_weights"),
    [("weighted_transformer_base", 12 * 2 * 8), ("weighted_transformer_big", 384)],
)
def test_only_branch_weights_are_added(name, branch_weights):
    hparams = catalogue.hparams(name)
    plain = catalogue.hparams(WEIGHTED[name][0])
    found = parameter_count(hparams, 37_000, 37_000)
    assert found == parameter_count(plain, 37_000, 37_000) + branch_weights


@pytest.mark.parametrize(
    ("name", "dropout", "steps"),
    [
        ("weighted_transformer_n2", 0.1, 60_000),
        ("weighted_transformer_n4", 0.1, 60_000),
        ("weighted_transformer_base", 0.1, 60_000),
        ("weighted_transformer_n8", 0.3, 60_000),
        ("weighted_transformer_big", 0.3, 250_000),
    ],
)
def test_the_sensitivity_rows_have_their_dropout_and_their_last_steps(
    name, dropout, steps
):
    """P_drop and steps as the paper's table of the sensitivity analysis prints them."""
    hparams = catalogue.hparams(name)
    assert hparams.layer_prepostprocess_dropout == dropout
    assert hparams.branch_frozen_after_steps == steps - 10_000
