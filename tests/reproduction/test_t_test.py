from __future__ import annotations

import pytest
from scipy import stats

from t2t_repro.reproduction.t_test import (
    confidence_interval,
    critical_value,
    two_sided_p,
)

DEGREES = [1, 2, 3, 4, 5, 13, 30, 101]


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("t", [0.0, 0.3, 1.5, 4.0, -2.5, 60.0])
def test_p_values_are_those_of_scipy(degrees, t):
    expected = 2 * stats.t.sf(abs(t), degrees)
    assert two_sided_p(t, degrees) == pytest.approx(expected, abs=1e-12)


def test_a_p_value_is_never_negative():
    assert all(two_sided_p(10.0**power, n) >= 0 for power in range(9) for n in DEGREES)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("coverage", [0.5, 0.95, 0.999])
def test_critical_values_are_those_of_scipy(degrees, coverage):
    expected = stats.t.ppf((1 + coverage) / 2, degrees)
    assert critical_value(coverage, degrees) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("coverage", [0.5, 0.95])
def test_a_confidence_interval_is_that_of_scipy_if_the_degrees_are_whole(coverage):
    """Groups of one size and one variance have twice the degrees of one group."""
    first, second = [1.0, 2.0, 4.0, 7.0], [5.0, 6.0, 8.0, 11.0]
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(
        coverage
    )
    found = confidence_interval(coverage, first, second)
    assert found == pytest.approx(tuple(expected))


def test_a_fraction_of_a_degree_makes_a_confidence_interval_wider():
    first, second = [1.0, 2.0, 4.0, 7.0], [5.0, 6.5, 6.0]
    test = stats.ttest_ind(first, second, equal_var=False)
    low, high = confidence_interval(0.95, first, second)
    exact = test.confidence_interval(0.95)
    assert low < exact.low < exact.high < high
    assert (low + high) / 2 == pytest.approx((exact.low + exact.high) / 2)


def test_rounding_does_not_cost_the_only_degree_of_freedom():
    """The quotient is 1 minus a rounding error, as one group has no variance."""
    first, second = [33.15, 33.47], [33.2, 33.2]
    found = confidence_interval(0.95, first, second)
    expected = stats.ttest_1samp(first, 33.2).confidence_interval(0.95)
    assert found == pytest.approx([end - 33.2 for end in expected])


def test_groups_without_variance_have_an_interval_without_width():
    assert confidence_interval(0.95, [3.0, 3.0], [1.0, 1.0]) == (2.0, 2.0)
