from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results import peaks
from results.form_runs import Repeat
from t2t_repro.features.reproduction.result_files import NOT_YET
from tests.support.curve import CURVE
from tests.support.form_runs import AROUND, PLAIN, result, table_rows

HALF = dataclasses.replace(
    CURVE, name=f"{AROUND}-long-peak0.5", seed=1, steps=(10, 20), nll=(3.0, 2.25)
)
OTHERS = [
    dataclasses.replace(HALF, name=f"{AROUND}-long-peak2", seed=2, nll=(3.0, 1.0)),
    dataclasses.replace(HALF, name=f"{PLAIN}-long-peak0.5", nll=(3.0, 1.0)),
]


def test_the_last_nll_of_other_peaks_is_shown_beside_the_same_seed_on_a_cpu():
    repeats = [
        Repeat(AROUND, 1, {"nll (dev)": 2.5}),
        Repeat(AROUND, 2, {"nll (dev)": 9.0}),
    ]
    accelerated = dataclasses.replace(result(AROUND, 1, 9.0), versions={"jax": "1"})
    found = table_rows(peaks.table([accelerated], [HALF, *OTHERS], repeats))
    assert found[-1] == {
        "row": "`forms/around`",
        "half the peak": "2.250",
        "the peak of all rows": "2.500",
        "twice the peak": NOT_YET,
    }
