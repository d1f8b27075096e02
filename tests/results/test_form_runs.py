from __future__ import annotations

import dataclasses
import statistics

import pytest

from results.form_runs import Repeat, cpu_repeats, repeat_gaps, repeats_table
from results.measurements import recorded_measurements
from t2t_repro.features.reproduction.result_files import shipped_results
from tests.support.form_runs import AROUND, PLAIN, RESULTS, result, table_rows

ACCELERATED = [dataclasses.replace(x, versions={"jax": "1"}) for x in RESULTS]
REPEATS = [
    Repeat(PLAIN, 7, {"nll (dev)": 2.0, "BLEU (dev+test)": 31.0}),
    Repeat(AROUND, 7, {"nll (dev)": 2.75, "BLEU (dev+test)": 29.0}),
]


def test_repeats_on_cpus_are_shown_beside_the_accelerators_seeds():
    plain, around = table_rows(repeats_table(ACCELERATED, REPEATS))
    assert plain == {
        "row": "`transformer`",
        "CPU seed": "7",
        "nll, CPU": "2.000",
        "nll, H200": "2.062 ± 0.088",
        "both, CPU": "31.00",
        "both, H200": "31.00 ± 0.00",
    }
    assert around["nll, H200"] == "2.625 ± 0.177"


def test_the_difference_of_cpus_is_the_mean_over_their_training_runs():
    # Without the runs of CPUs among the results.
    found = repeat_gaps([*ACCELERATED, result(PLAIN, 9, 1.0)], REPEATS)
    gaps = [2.0 - 2.0625, 2.75 - 2.625]
    assert found["runs"] == 2
    assert found["nll"] == pytest.approx(statistics.mean(gaps))
    assert found["nll_deviation"] == pytest.approx(statistics.stdev(gaps))


def test_measured_and_recorded_repeats_are_joined():
    agreement = recorded_measurements()["accelerator_agreement"]
    first = cpu_repeats(agreement, ())
    joined = cpu_repeats(agreement, [shipped_results()[0]])
    assert joined[:-1] == first
    assert joined[-1].seed == shipped_results()[0].seed
