"""Compare the order of our scores with the published order.

The test is a permutation test (Kendall 1938). Orders of few rows are enumerated, for
exact p-values; those of more rows are sampled with a fixed seed, to keep pages the
same.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from t2t_repro.features.reproduction.paper_tables import Row, Table
from t2t_repro.features.reproduction.result_files import SCALES, Result, averaged_score

EXACT_ROWS = 7  # 5,040 orders
SAMPLES = 2_000_000
COVERAGE = 0.95


class OrderTest(NamedTuple):
    """Agreement of an order with the published one, and of random orders.

    Attributes:
        same: Number of pairs in the published order.
        pairs: Number of pairs whose published values have an order.
        low: Lower end of the interval that holds 95 % of random orders.
        high: Its upper end.
        p_value: Probability that a random order agrees at least as well.
    """

    same: int
    pairs: int
    low: int
    high: int
    p_value: float


def order_test(
    published: Sequence[float], measured: Sequence[float], least: float = 0.0
) -> OrderTest:
    """Compare the order of measured values with the published one.

    Args:
        published: Published value of each row.
        measured: Our value of each row.
        least: Smallest difference of published values that is an order.

    Returns:
        The number of pairs in the published order, and that of random orders: all
        permutations of up to seven rows, otherwise two million.

    Raises:
        ValueError: If the numbers of values differ.
    """
    if len(published) != len(measured):
        raise ValueError(
            "`published` and `measured` must hold a value per row. Received "
            f"{len(published)} and {len(measured)}"
        )
    ranks = np.unique(measured, return_inverse=True)[1].astype(np.uint8)
    pairs = _ordered_pairs(published, least)
    same = int(_count_same_pairs(pairs, ranks[:, np.newaxis])[0])
    random = _count_same_pairs(pairs, ranks[_orders(len(ranks))])
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(random, [tail, 1 - tail], method="inverted_cdf")
    at_least = int(np.sum(random >= same))
    exact = len(ranks) <= EXACT_ROWS
    # A sample also counts the measured order itself (Davison and Hinkley 1997).
    p_value = at_least / len(random) if exact else (at_least + 1) / (len(random) + 1)
    return OrderTest(same, len(pairs), int(low), int(high), p_value)


@functools.lru_cache(maxsize=2)
def _orders(count: int) -> np.ndarray:
    """Return orders of rows: indices `[count, orders]`."""
    if count <= EXACT_ROWS:
        orders = [*itertools.permutations(range(count))]
        return np.array(orders, np.uint8).reshape(-1, count).T
    rng = np.random.default_rng(0)
    orders = np.tile(np.arange(count, dtype=np.uint8), (SAMPLES, 1))
    return np.ascontiguousarray(rng.permuted(orders, axis=1, out=orders).T)


def _ordered_pairs(published: Sequence[float], least: float) -> list[tuple[int, int]]:
    """Return the pairs of rows that the paper orders, the lower value first."""
    rows = range(len(published))
    return [
        (a, b)
        for a, b in itertools.permutations(rows, 2)
        if published[a] < published[b]
        # A difference of 0.05 of two decimals may be 0.04999.
        and published[b] - published[a] > least - 1e-9
    ]


def _count_same_pairs(
    pairs: Sequence[tuple[int, int]], values: np.ndarray
) -> np.ndarray:
    """Count pairs in the published order for each column of `values`."""
    same = np.zeros(values.shape[1], np.uint16)
    for lower, higher in pairs:
        same += values[lower] < values[higher]
    return same


# Published column -> score of a result.
SCORES = {"PPL": "perplexity", "BLEU": "BLEU", "Weighted": "BLEU", "en-de": "BLEU"}
# The papers have one seed per row: a smaller difference is no order.
LEAST_DIFFERENCES = {"PPL": 0.05}
# The scores that rank systems at the long scale.
LONG_SCORES = {"perplexity": "nll (dev)", "BLEU": "BLEU (dev+test)"}
FEWEST_ROWS = 3  # with fewer, an order means little
LETTERED_TABLE, BASELINE = "table3", "base"
ALL_ROWS = "all"


class Scores(NamedTuple):
    """Published and measured values of a row in a column.

    Attributes:
        published: Value in the paper.
        measured: Our value per seed.
    """

    published: float
    measured: list[float]


class GroupAgreement(NamedTuple):
    """Agreement of a group of rows with the published order.

    Attributes:
        group: "all", or a group of Table 3, such as "(A)".
        column: Published column.
        score: Name of our score.
        test: Agreement, and that of random orders.
    """

    group: str
    column: str
    score: str
    test: OrderTest


def compared_scores(table: Table, column: str, scale: str) -> tuple[str, ...]:
    """Return the names of our scores that are compared with a published column.

    Args:
        table: The table.
        column: One of its columns.
        scale: "small", "long" or "paper".

    Returns:
        At the long scale, a score of the last checkpoint and that of the average;
        otherwise one score. Empty if nothing is compared with the column.
    """
    if column not in SCORES:
        return ()
    if scale != "long":
        return (f"{SCORES[column]} ({table.split})",)
    score = LONG_SCORES[SCORES[column]]
    return score, averaged_score(score)


def agreement_notes(table: Table, results: Sequence[Result]) -> list[str]:
    """Describe how well results agree with the published table, and with each other.

    Args:
        table: The table.
        results: Results of any systems.

    Returns:
        Up to two lines per scale and score: the number of pairs of rows in the
        published order, if at least three rows are measured, and the deviation between
        seeds, if a row has at least two.
    """
    notes = []
    for scale, column in itertools.product(SCALES, table.columns):
        of_scale = [result for result in results if result.scale == scale]
        for score in compared_scores(table, column, scale):
            rows = scores_of(table, column, score, of_scale)
            if len(rows) >= FEWEST_ROWS:
                test = order_of(rows, column)
                notes.append(f"{scale}, {score}: {order_text(test)}")
            spread = pooled_deviation([row.measured for row in rows])
            if spread is not None:
                notes.append(
                    f"{scale}, {score}: standard deviation between seeds of the same "
                    f"row: {spread:.{decimals(score)}f}."
                )
    return notes


def decimals(score: str) -> int:
    """Return the number of decimals to show of a score."""
    return 3 if score.startswith("nll") else 2


def group_agreements(
    table: Table,
    results: Sequence[Result],
    scale: str,
    key: Callable[[Row], str] | None = None,
    fewest_rows: int = 2,
) -> list[GroupAgreement]:
    """Compare the order of groups of rows with the published order.

    Args:
        table: The table.
        results: Results of any systems.
        scale: "small", "long" or "paper".
        key: Function from a row to its group, `letter_of` by default.
        fewest_rows: Smallest number of rows of a group, the baseline included.

    Returns:
        The agreement of all rows and, in Table 3, of each group's rows with the
        baseline, per column and score. Groups without a pair whose published values
        differ are left out.
    """
    groups = {ALL_ROWS: table}
    if table.name == LETTERED_TABLE:
        groups |= grouped(table, BASELINE, key or letter_of, fewest_rows)
    of_scale = [result for result in results if result.scale == scale]
    found = []
    for name, group in groups.items():
        for column in table.columns:
            for score in compared_scores(table, column, scale):
                rows = scores_of(group, column, score, of_scale)
                if len({row.published for row in rows}) > 1:
                    test = order_of(rows, column)
                    found.append(GroupAgreement(name, column, score, test))
    return found


def order_of(rows: Sequence[Scores], column: str) -> OrderTest:
    """Compare the order of the rows' mean scores with that of a published column."""
    return order_test(
        [row.published for row in rows],
        [statistics.mean(row.measured) for row in rows],
        LEAST_DIFFERENCES.get(column, 0.0),
    )


def order_text(test: OrderTest) -> str:
    """Write the agreement of an order as a sentence."""
    return (
        f"{test.same} of {test.pairs} pairs of rows have the published order (half is "
        f"chance; 95 % of random orders have {test.low} to {test.high}, "
        f"{p_value_text(test.p_value, 2)})."
    )


def p_value_text(p_value: float, places: int) -> str:
    """Write a p-value as "p = 0.04", or "p < 0.01" if it would be rounded to zero."""
    cell = p_value_cell(p_value, places)
    return f"p {cell}" if cell.startswith("<") else f"p = {cell}"


def p_value_cell(p_value: float, places: int) -> str:
    """Write a p-value as "0.04", or "< 0.01" if it would be rounded to zero."""
    text = f"{p_value:.{places}f}"
    return text if float(text) else f"< {10**-places:.{places}f}"


def group_of(row: Row) -> str:
    """Return the setting that a row of Table 3 varies, such as "(C) d_model"."""
    return row.label.partition("=")[0]


def letter_of(row: Row) -> str:
    """Return the group of a row of Table 3, for example "(C)"; "" if it has none."""
    return row.label[:3] if row.label.startswith("(") else ""


def grouped(
    table: Table, baseline: str, key: Callable[[Row], str], fewest_rows: int
) -> dict[str, Table]:
    """Split a table into groups of rows that vary the same value.

    Args:
        table: A table whose labels have the form "(A) h=4".
        baseline: Name of the row that belongs to every group.
        key: Function from a row to the name of its group; rows with an empty name are
            left out.
        fewest_rows: Smallest number of rows of a group, the baseline included.

    Returns:
        A table per group.
    """
    base = [row for row in table.rows if row.name == baseline]
    groups: dict[str, list[Row]] = {}
    for row in table.rows:
        if row.name != baseline and key(row):
            groups.setdefault(key(row), [*base]).append(row)
    return {
        name: dataclasses.replace(table, rows=rows)
        for name, rows in groups.items()
        if len(rows) >= fewest_rows
    }


def pooled_deviation(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation of values around the means of their groups.

    Returns:
        The square root of the sum of squares over the degrees of freedom; None if no
        group has two values.
    """
    degrees = sum(len(group) - 1 for group in groups if group)
    if not degrees:
        return None
    squares = sum((x - statistics.mean(group)) ** 2 for group in groups for x in group)
    return math.sqrt(squares / degrees)


def scores_of(
    table: Table, column: str, score: str, results: Sequence[Result]
) -> list[Scores]:
    """Return the rows of a table that have a published and a measured value.

    Args:
        table: The table.
        column: Its column with the published values.
        score: Name of our score.
        results: Results of one scale.
    """
    rows = []
    for row in table.rows:
        published = row.published.get(column)
        measured = measured_values(row, score, results)
        if isinstance(published, int | float) and measured:
            rows.append(Scores(float(published), measured))
    return rows


def measured_values(row: Row, score: str, results: Sequence[Result]) -> list[float]:
    """Return our scores of a row, one per seed.

    Args:
        row: The row.
        score: Name of the score.
        results: Results of one scale.
    """
    return [
        result.scores[score]
        for result in results
        if result.system == row.system and score in result.scores
    ]
