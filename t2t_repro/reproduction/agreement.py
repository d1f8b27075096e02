"""Compare the order of our scores with the published order."""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from t2t_repro.reproduction.permutation import OrderTest, order_test
from t2t_repro.reproduction.results import SCALES, Result
from t2t_repro.reproduction.tables import Row, Table

# Published column -> score of a result.
SCORES = {"PPL": "perplexity", "BLEU": "BLEU", "Weighted": "BLEU", "en-de": "BLEU"}
FEWEST_ROWS = 3  # with fewer, an order means little


class Scores(NamedTuple):
    """Published and measured values of a row in a column.

    Attributes:
        published: Value in the paper.
        measured: Our value per seed.
    """

    published: float
    measured: list[float]


def agreement_notes(table: Table, results: Sequence[Result]) -> list[str]:
    """Describe how well results agree with the published table, and with each other.

    Args:
        table: The table.
        results: Results of any systems.

    Returns:
        Up to two lines per scale and column: the number of pairs of rows in the
        published order, if at least three rows are measured, and the deviation between
        seeds, if a row has at least two.
    """
    notes = []
    for scale, column in itertools.product(SCALES, table.columns):
        if column not in SCORES:
            continue
        score = f"{SCORES[column]} ({table.split})"
        of_scale = [result for result in results if result.scale == scale]
        rows = scores_of(table, column, score, of_scale)
        if len(rows) >= FEWEST_ROWS:
            notes.append(f"{scale}, {score}: {order_text(order_of(rows))}")
        spread = pooled_deviation([row.measured for row in rows])
        if spread is not None:
            notes.append(
                f"{scale}, {score}: standard deviation between seeds of the same row: "
                f"{spread:.2f}."
            )
    return notes


def order_of(rows: Sequence[Scores]) -> OrderTest:
    """Compare the order of the rows' mean scores with the published one."""
    return order_test(
        [row.published for row in rows],
        [statistics.mean(row.measured) for row in rows],
    )


def order_text(test: OrderTest) -> str:
    """Write the agreement of an order as a sentence."""
    return (
        f"{test.same} of {test.pairs} pairs of rows have the published order (half is "
        f"chance; 95 % of random orders have {test.low} to {test.high}, p = "
        f"{test.p_value:.2f})."
    )


def group_of(row: Row) -> str:
    """Return the setting that a row of Table 3 varies, such as "(C) d_model"."""
    return row.label.partition("=")[0]


def grouped(table: Table, baseline: str) -> dict[str, Table]:
    """Split a table into groups of rows that vary the same value.

    Args:
        table: A table whose labels have the form "(A) h=4".
        baseline: Name of the row that belongs to every group.

    Returns:
        A table per group with at least three rows, the baseline included.
    """
    base = [row for row in table.rows if row.name == baseline]
    groups: dict[str, list[Row]] = {}
    for row in table.rows:
        if row.name != baseline:
            groups.setdefault(group_of(row), [*base]).append(row)
    return {
        name: dataclasses.replace(table, rows=rows)
        for name, rows in groups.items()
        if len(rows) >= FEWEST_ROWS
    }


def pooled_deviation(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation of values around the means of their groups.

    Returns:
        The square root of the sum of squares over the degrees of freedom; None if no
        group has two values.
    """
    degrees = sum(len(group) - 1 for group in groups)
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
        measured = [
            result.scores[score]
            for result in results
            if result.system == row.system and score in result.scores
        ]
        if isinstance(published, int | float) and measured:
            rows.append(Scores(float(published), measured))
    return rows
