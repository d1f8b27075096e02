"""Numbers that the page derives are those of the files and of other implementations."""

from __future__ import annotations

import dataclasses
import itertools
import statistics

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from scipy import stats

from results.derived import (
    accelerated,
    confidence_interval,
    permutation_test,
    update_minutes,
)
from t2t_repro.features.reproduction.result_files import shipped_results


def test_a_confidence_interval_is_that_of_scipy():
    first, second = [1.0, 2.0, 4.0, 7.0], [5.0, 6.5, 6.0]
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert confidence_interval(first, second) == pytest.approx(tuple(expected))


def test_an_interval_is_that_of_one_group_if_the_other_has_no_variance():
    first, second = [33.15, 33.47], [33.2, 33.2]
    found = confidence_interval(first, second)
    expected = stats.ttest_1samp(first, 33.2).confidence_interval(0.95)
    assert found == pytest.approx([end - 33.2 for end in expected])
    assert confidence_interval([3.0, 3.0], [1.0, 1.0]) == (2.0, 2.0)


def test_the_difference_of_two_systems_is_compared_with_all_splits():
    first, second = [27.2, 28.1, 26.4, 27.9], [25.3, 26.9, 26.0]
    scores = [*first, *second]
    observed = statistics.mean(first) - statistics.mean(second)
    extreme = total = 0
    for chosen in itertools.combinations(range(7), 4):
        left = [scores[i] for i in chosen]
        right = [scores[i] for i in range(7) if i not in chosen]
        difference = statistics.mean(left) - statistics.mean(right)
        extreme += abs(difference) >= abs(observed) - 1e-9
        total += 1
    assert total == 35
    assert permutation_test(first, second) == pytest.approx(extreme / total)
    assert permutation_test(second, first) == pytest.approx(extreme / total)


def test_times_on_cpus_and_on_accelerators_are_kept_apart():
    base = next(r for r in shipped_results() if r.system == "transformer_base")
    on_cpu = dataclasses.replace(
        base, scale="long", seconds=600.0, versions={"tensorflow": "2.21.0"}
    )
    scores = {"BLEU (dev)": 30.0}
    runs = [
        dataclasses.replace(
            on_cpu,
            system=system,
            seconds=s,
            versions={"jax": "0.11"},
            scores=scores,
            hardware="1 x GPU of a kind, 3 seeds at once",
        )
        for system, s in (("a", 60.0), ("a", 60.0), ("b", 90.0))
    ]
    times = update_minutes([on_cpu, *runs])
    assert times == {"long_low": 10.0, "long_high": 10.0}
    assert accelerated([on_cpu, *runs]) == {
        "runs": 3,
        "rows": 2,
        "seconds_low": 60.0,
        "seconds_high": 90.0,
        "device": "GPU of a kind",
    }
