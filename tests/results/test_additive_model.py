from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from scipy import stats

from results.additive_model import (
    adjusted,
    differences,
    interaction_p_value,
    noise_degrees,
    noise_deviation,
)

FIRST = {1: 2.0, 2: 2.5, 3: 2.25}
SECOND = {1: 2.5, 2: 2.875, 3: 2.75}
THIRD = {1: 1.5, 2: 2.25, 3: 1.875}


def residual(scores: dict[str, dict[int, float]]) -> tuple[float, int]:
    runs = [(name, seed) for name, own in scores.items() for seed in own]
    names, seeds = ([*dict.fromkeys(x)] for x in zip(*runs, strict=True))
    design = np.array(
        [
            [name == x for x in names] + [seed == x for x in seeds[1:]]
            for name, seed in runs
        ],
        dtype=float,
    )
    values = np.array([scores[name][seed] for name, seed in runs])
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.sum((values - fitted) ** 2)), len(runs) - design.shape[1]


def test_two_systems_give_the_paired_t_test():
    expected = stats.ttest_rel([*SECOND.values()], [*FIRST.values()])
    low, high = expected.confidence_interval(0.9)
    (found,) = differences({"first": FIRST, "second": SECOND}, "first", 0.9).values()
    assert found.value == pytest.approx((0.5 + 0.375 + 0.5) / 3)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.p_value == pytest.approx(expected.pvalue)


def test_the_detectable_difference_is_found_in_four_of_five_cases():
    """Simulated: five paired seeds whose noise is known."""
    random = np.random.default_rng(1)
    noise = random.normal(size=(20_000, 5))
    (found,) = differences(
        {
            "first": dict(enumerate([0.0] * 5)),
            "second": dict(enumerate([1.0, -1.0, 0.5, -0.5, 0.0])),
        },
        "first",
    ).values()
    error = np.std([1.0, -1.0, 0.5, -0.5, 0.0], ddof=1)
    shifted = noise * error + found.detectable
    share = np.mean(stats.ttest_1samp(shifted, 0.0, axis=1).pvalue < 0.05)
    assert share == pytest.approx(0.8, abs=0.01)


def test_runs_beyond_those_that_fix_systems_and_seeds_measure_the_noise():
    assert noise_degrees({"first": FIRST, "second": SECOND}) == 2
    assert noise_degrees({"first": FIRST, "second": SECOND, "third": {2: 1.0}}) == 2
    assert noise_degrees({"first": FIRST}) == 0
    assert noise_degrees({"first": FIRST, "second": {4: 1.0, 5: 1.0}}) == 0
    missing = {"first": FIRST, "second": SECOND, "third": {1: 1.0, 3: 1.5}}
    assert noise_degrees(missing) == residual(missing)[1]


def test_an_effect_of_the_seed_is_not_noise():
    """Independent groups would not tell these two apart."""
    assert stats.ttest_ind([*FIRST.values()], [*SECOND.values()]).pvalue > 0.05
    found = differences({"first": FIRST, "second": SECOND}, "first")["second"]
    assert found.p_value < 0.01
    assert 0 < found.low < found.value < found.high


@pytest.mark.parametrize("missing", [None, 1, 3])
def test_p_values_equal_the_f_test_against_equal_systems(missing):
    third = {seed: value for seed, value in THIRD.items() if seed != missing}
    scores = {"first": FIRST, "second": SECOND, "third": third}
    full, degrees = residual(scores)
    # The reduced model has one level for the first and the third system. Seeds that
    # both have become two runs of it.
    runs = [("pair", s, v) for own in (FIRST, third) for s, v in own.items()]
    runs += [("second", s, v) for s, v in SECOND.items()]
    design = np.array(
        [[n == "pair", n == "second", s == 2, s == 3] for n, s, _ in runs], dtype=float
    )
    values = np.array([v for *_, v in runs])
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    reduced = float(np.sum((values - fitted) ** 2))
    f = (reduced - full) / (full / degrees)
    expected = stats.f.sf(f, 1, degrees)
    found = differences(scores, "first")["third"]
    assert found.p_value == pytest.approx(expected)


def test_a_system_that_shares_no_seed_is_not_compared_unless_another_connects_them():
    assert differences({"first": {1: 2.0}, "second": {1: 3.0}}, "first") == {}
    scores = {"first": FIRST, "second": SECOND, "other": {7: 2.0, 8: 2.5}}
    assert set(differences(scores, "first")) == {"second"}
    scores = {"first": FIRST, "second": SECOND | {7: 3.0}, "other": {7: 2.0}}
    assert set(differences(scores, "first")) == {"second", "other"}


def test_p_values_are_adjusted_by_holms_method():
    """Holm multiplies the smallest by 3, the next by 2, and keeps them in order."""
    found = adjusted({"a": 0.03, "b": 0.01, "c": 0.02, "d": 0.9})
    assert found == pytest.approx({"b": 0.04, "c": 0.06, "a": 0.06, "d": 0.9})
    assert adjusted({"a": 0.7, "b": 0.6}) == {"b": 1.0, "a": 1.0}
    assert adjusted({}) == {}


def test_the_noise_is_the_residual_deviation_of_systems_and_blocks():
    scores = {"first": FIRST, "second": SECOND, "third": THIRD}
    squares, degrees = residual(scores)
    assert noise_deviation(scores) == pytest.approx((squares / degrees) ** 0.5)


def test_an_interaction_with_hardware_is_the_f_test_of_two_way_groups():
    """Two systems, two kinds of hardware: the F test is a t test of paired gaps."""
    kinds = {1: "cpu", 2: "cpu", 3: "cpu", 4: "tpu", 5: "tpu"}
    first = FIRST | {4: 1.5, 5: 1.75}
    second = SECOND | {4: 2.75, 5: 3.5}
    gaps = [second[x] - first[x] for x in kinds]
    expected = stats.ttest_ind(gaps[:3], gaps[3:]).pvalue
    scores = {"first": first, "second": second}
    assert interaction_p_value(scores, kinds.get) == pytest.approx(expected)


def test_hardware_that_one_system_alone_has_seen_contradicts_nothing():
    scores = {"first": FIRST, "second": SECOND}
    assert interaction_p_value(scores, lambda _: "cpu") == 1.0
