from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results import losses
from tests.support.curve import CURVE

CONTROL = dataclasses.replace(
    CURVE,
    name="transformer_base_transformer_attention_dropout-long",
    steps=(10, 20, 30),
    nll=(3.0, 2.0, 1.5),
    training_nll=(4.0, 3.0, 2.0),
)
# Faster, and regularized: its dev nll is lower at each training nll.
WEIGHTED = dataclasses.replace(
    CONTROL,
    name="weighted_transformer_base-long-cpu",
    nll=(2.5, 1.5, 1.0),
    training_nll=(3.5, 2.5, 1.5),
)


def test_dev_nll_is_compared_at_the_last_training_nll_that_both_reach():
    """At 2.0, the control's own is 1.5; the other's is between 1.5 and 1.0."""
    assert losses.gap(WEIGHTED, CONTROL) == pytest.approx(1.25 - 1.5)
    assert losses.gap(CONTROL, WEIGHTED) == pytest.approx(1.5 - 1.25)


def test_seeds_are_paired_and_a_single_one_is_said_to_be_one():
    others = [
        dataclasses.replace(WEIGHTED, seed=2, nll=(2.5, 1.75, 1.25)),
        dataclasses.replace(WEIGHTED, seed=3),
        dataclasses.replace(CONTROL, seed=2),
    ]
    assert losses.gaps([CONTROL, WEIGHTED])["weighted"] == "-0.250 (one seed)"
    found = losses.gaps([CONTROL, WEIGHTED, *others])
    assert found["weighted"] == "-0.125 (2 seeds: -0.250 to +0.000)"
    assert found["around"] == "not yet measured"


def test_curves_of_an_accelerator_or_without_training_nll_are_left_out():
    without = dataclasses.replace(WEIGHTED, training_nll=())
    other = dataclasses.replace(WEIGHTED, name="weighted_transformer_base_shared-long")
    assert losses.curves_by_row([without, other]) == {}
