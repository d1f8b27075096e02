"""A permutation test of the order of rows.

Kendall 1938. Orders of few rows are enumerated, so that their p-values are exact; those
of more rows are sampled with a fixed seed, so that a page stays the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

EXACT_ROWS = 7  # 5,040 orders
SAMPLES = 10_000
COVERAGE = 0.95


class OrderTest(NamedTuple):
    """Agreement of an order with the published one, and of random orders.

    Attributes:
        same: Number of pairs in the published order.
        pairs: Number of pairs whose published values differ.
        low: Lower end of the interval that holds 95 % of random orders.
        high: Its upper end.
        p_value: Probability that a random order agrees at least as well.
    """

    same: int
    pairs: int
    low: int
    high: int
    p_value: float


def order_test(published: Sequence[float], measured: Sequence[float]) -> OrderTest:
    """Compare the order of measured values with the published one.

    Args:
        published: Published value of each row.
        measured: Our value of each row.

    Returns:
        The number of pairs in the published order, and that of random orders: all
        permutations of up to seven rows, otherwise 10,000.

    Raises:
        ValueError: If the numbers of values differ.
    """
    if len(published) != len(measured):
        raise ValueError(
            "`published` and `measured` must hold a value per row. Received "
            f"{len(published)} and {len(measured)}"
        )
    values = np.asarray(measured, dtype=float)
    orders = _orders(len(values))
    same, pairs = _same_pairs(published, values[np.newaxis])
    random, _ = _same_pairs(published, values[orders])
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(random, [tail, 1 - tail], method="inverted_cdf")
    at_least = int(np.sum(random >= same[0]))
    exact = len(values) <= EXACT_ROWS
    # A sample also counts the measured order itself (Davison and Hinkley 1997).
    p_value = at_least / len(random) if exact else (at_least + 1) / (len(random) + 1)
    return OrderTest(int(same[0]), pairs, int(low), int(high), p_value)


def _orders(count: int) -> np.ndarray:
    """Return orders of rows: indices `[orders, count]`."""
    if count <= EXACT_ROWS:
        return np.array(list(itertools.permutations(range(count))))
    rng = np.random.default_rng(0)
    return np.argsort(rng.random((SAMPLES, count)), axis=1)


def _same_pairs(
    published: Sequence[float], measured: np.ndarray
) -> tuple[np.ndarray, int]:
    """Count pairs in the published order for each line of `measured`."""
    pairs = [
        (a, b)
        for a, b in itertools.combinations(range(len(published)), 2)
        if published[a] != published[b]
    ]
    if not pairs:
        return np.zeros(len(measured), int), 0
    first, second = np.array(pairs).T
    rises = np.sign(np.asarray(published)[first] - np.asarray(published)[second])
    differences = measured[:, first] - measured[:, second]
    return np.sum(rises * differences > 0, axis=1), len(pairs)
