from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results import peaks
from results.form_runs import CONTROL, Repeat, system_of
from t2t_repro.features.reproduction.result_files import NOT_YET
from tests.support.form_runs import AROUND, result, table_rows

TRANSFORMER = system_of(CONTROL)
NLL = {
    TRANSFORMER: (2.0, 2.125, 2.25, 2.0625, 2.1875),
    AROUND: (2.5, 2.75, 2.625, 2.5, 2.75),
}
TWICE = [
    result(f"{name}-peak2", seed, nll)
    for name, values in NLL.items()
    for seed, nll in enumerate(values)
]


def test_scores_at_other_peaks_are_shown_beside_those_of_the_seeds_on_a_cpu():
    repeats = [
        Repeat(AROUND, seed, {"nll (dev)": 2.0 + seed, "BLEU (dev+test)": 30.0})
        for seed in (1, 2)
    ]
    accelerated = dataclasses.replace(result(AROUND, 1, 9.0), versions={"jax": "1"})
    half = result(f"{AROUND}-peak0.5", 1, 2.25)
    rows = table_rows(peaks.table([accelerated], repeats, [half, *TWICE]))
    found = next(x for x in rows if x["row"] == "`forms/around`")
    assert found == {
        "row": "`forms/around`",
        "score": "nll (dev)",
        "half the peak": "2.250 (one seed)",
        "the peak of all rows": "3.500 ± 0.707 (2 seeds)",
        "twice the peak": "2.625 ± 0.125 (5 seeds)",
    }


def test_a_reading_is_compared_with_the_transformer_at_the_same_peak():
    values = peaks.values([], [], TWICE)
    # The differences of the seeds are 0.5, 0.625, 0.375, 0.4375 and 0.5625.
    assert values["twice_around_gap"]["nll"].startswith(
        "+0.500 (5 seeds: +0.375 to +0.625; 95 % interval +0.377 to +0.623, p < 0.001"
    )
    assert values["half_around_gap"]["nll"] == NOT_YET
    assert values["twice_weighted_gap"]["nll"] == NOT_YET


def test_with_few_seeds_the_mean_has_no_interval():
    values = peaks.values([], [], [TWICE[0], TWICE[5], TWICE[6]])
    assert values["twice_around_gap"]["nll"] == "+0.500 (one seed)"
