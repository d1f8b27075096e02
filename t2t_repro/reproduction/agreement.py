"""Compare the order of our scores with the published order."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from t2t_repro.reproduction.results import SCALES, Result
from t2t_repro.reproduction.tables import Table

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
        rows = _scores(table, column, score, of_scale)
        if len(rows) >= FEWEST_ROWS:
            same, pairs = pairs_in_order(rows)
            order = f"{same} of {pairs} pairs of rows have the published order"
            notes.append(f"{scale}, {score}: {order} (half is chance).")
        spread = pooled_deviation([row.measured for row in rows])
        if spread is not None:
            notes.append(
                f"{scale}, {score}: standard deviation between seeds of the same row: "
                f"{spread:.2f}."
            )
    return notes


def pairs_in_order(rows: Sequence[Scores]) -> tuple[int, int]:
    """Count the pairs of rows whose mean scores have the published order.

    Without ties, Kendall's tau (1938) is `2 * same / pairs - 1`.

    Returns:
        The number of pairs in the same order, and of all pairs whose published values
        differ.
    """
    means = [(row.published, statistics.mean(row.measured)) for row in rows]
    differ = [
        (first, second)
        for first, second in itertools.combinations(means, 2)
        if first[0] != second[0]
    ]
    same = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in differ)
    return same, len(differ)


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


def _scores(
    table: Table, column: str, score: str, results: Sequence[Result]
) -> list[Scores]:
    """Return the rows that have a published and a measured value."""
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
