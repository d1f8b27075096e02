from __future__ import annotations

import math

import pytest
from scipy import stats

from t2t_repro.reproduction.t_test import t_test, two_sided_p


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 13, 30, 101])
@pytest.mark.parametrize("t", [0.0, 0.3, 1.5, 4.0, -2.5])
def test_p_values_are_those_of_scipy(degrees, t):
    expected = 2 * stats.t.sf(abs(t), degrees)
    assert two_sided_p(t, degrees) == pytest.approx(expected, abs=1e-12)


def test_two_groups_with_their_own_deviation_give_the_classical_test():
    first, second = [1.0, 2.0, 4.0], [3.0, 5.0]
    deviation = math.sqrt((14 / 3 + 2) / 3)  # sums of squares over n - 2
    expected = stats.ttest_ind(first, second).pvalue
    assert t_test(first, second, deviation, 3) == pytest.approx(expected)


def test_a_deviation_of_more_degrees_gives_smaller_p_values():
    p_values = [t_test([1.0, 2.0], [4.0, 5.0], 0.7, n) for n in (2, 5, 20)]
    assert p_values == sorted(p_values, reverse=True)
    assert len(set(p_values)) == 3
