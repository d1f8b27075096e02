from __future__ import annotations

import itertools

import pytest

from t2t_repro.features.reproduction.order_agreement import order_test


def pairs_in_order(published, measured):
    pairs = list(itertools.combinations(range(len(published)), 2))
    differ = [(a, b) for a, b in pairs if published[a] != published[b]]
    same = [
        (published[a] < published[b]) == (measured[a] < measured[b])
        for a, b in differ
        if measured[a] != measured[b]
    ]
    return sum(same), len(differ)


PUBLISHED = [4.92, 5.29, 5.00, 4.91, 5.01, 4.92]
MEASURED = [10.4, 10.36, 9.88, 10.71, 11.27, 9.5]


@pytest.mark.parametrize("count", [3, 4, 6])
def test_the_agreement_of_few_rows_is_that_of_all_permutations(count):
    published, measured = PUBLISHED[:count], MEASURED[:count]
    same, pairs = pairs_in_order(published, measured)
    random_orders = sorted(
        pairs_in_order(published, order)[0]
        for order in itertools.permutations(measured)
    )
    found = order_test(published, measured)
    assert (found.same, found.pairs) == (same, pairs)
    at_least = sum(value >= same for value in random_orders)
    assert found.p_value == pytest.approx(at_least / len(random_orders))
    # At most 2.5 % of the orders lie below the interval, and as many above it.
    below = sum(value < found.low for value in random_orders) / len(random_orders)
    above = sum(value > found.high for value in random_orders) / len(random_orders)
    assert max(below, above) <= 0.025
    to_low = sum(value <= found.low for value in random_orders) / len(random_orders)
    assert to_low >= 0.025


def test_ties_do_not_count_as_the_same_order():
    assert order_test([1, 1, 2], [5, 6, 6])[:2] == (1, 2)


def test_many_rows_are_sampled_around_half_of_the_pairs():
    values = [float(x) for x in range(12)]
    found = order_test(values, values)
    assert (found.same, found.pairs) == (66, 66)
    assert found.p_value == pytest.approx(1 / 10_001)
    # Kendall: the variance of the number of pairs is n (n - 1) (2 n + 5) / 72.
    deviation = (12 * 11 * 29 / 72) ** 0.5
    assert found.low == pytest.approx(33 - 1.96 * deviation, abs=1.5)
    assert found.high == pytest.approx(33 + 1.96 * deviation, abs=1.5)
    assert order_test(values, values) == found


def test_rows_need_both_values():
    with pytest.raises(ValueError, match="Received 2 and 1"):
        order_test([1, 2], [1])
