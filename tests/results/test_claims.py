"""Numbers of the claims are differences of the files' numbers."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results.claims import gaps_after, literal_gaps, nll_after, replaced_gaps
from results.measurements import recorded_measurements
from results.seeds import by_seed
from t2t_repro.features.reproduction.result_files import shipped_results
from tests.support.curve import CURVE

CONTROL = dataclasses.replace(
    CURVE,
    name="transformer_base_transformer_attention_dropout-long",
    versions={"tensorflow": "2.21.0"},
    steps=(100, 200),
    nll=(4.0, 3.0),
)
WEIGHTED = dataclasses.replace(
    CONTROL, name="weighted_transformer_base-long-cpu", nll=(4.5, 3.0)
)


def seeds(curve, *numbers, **changes):
    return [dataclasses.replace(curve, seed=x, **changes) for x in numbers]


def test_a_gap_in_training_is_the_mean_of_the_seeds_that_both_rows_have_on_cpus():
    curves = [
        *seeds(CONTROL, 1, 2, 3),
        *seeds(WEIGHTED, 1, 4),
        *seeds(WEIGHTED, 2, nll=(4.25, 3.5)),
        *seeds(WEIGHTED, 3, versions={"jax": "0.5"}, nll=(9.0, 9.0)),
    ]
    rows = ("weighted", "transformer_attention_dropout")
    assert gaps_after(curves, *rows, (100, 200)) == "+0.375 and +0.250 (2 seeds)"


def test_the_nll_after_a_share_of_the_updates_is_that_of_the_evaluation_there():
    curves = [*seeds(CONTROL, 1), *seeds(CONTROL, 2, nll=(5.0, 2.0))]
    assert nll_after(curves, CONTROL.name, 0.5) == 4.5
    assert nll_after(curves, CONTROL.name, 1.0) == 2.5


def test_literal_gaps_compare_depths_with_plain_models_and_variants_with_the_reading():
    results, measured = shipped_results(), recorded_measurements()["weighted_around"]
    found = literal_gaps(results, measured, "BLEU (dev)")
    scores = dict(zip(*measured.columns("system", "dev BLEU"), strict=True))
    (plain,) = by_seed(results, "transformer_base_c_n8", "BLEU (dev)").values()
    assert found["n8"] == pytest.approx(
        scores["8 layers (here 4), dropout 0.3"] - plain
    )
    assert found["top4"] == pytest.approx(
        scores["gating, the top 4 of 8"] - scores["the base model"]
    )


def test_replaced_weights_are_compared_with_the_learned_ones_of_the_same_models():
    measured = recorded_measurements()["weighted_around"]
    scores = dict(zip(*measured.columns("system", "dev BLEU"), strict=True))
    found = replaced_gaps(measured)
    assert found["uniform"] == pytest.approx(
        scores["2 layers, uniform weights"] - scores["2 layers (here 1)"]
    )
    assert found["random"] < found["uniform"] < 0
