"""Do our scores put the rows of a table in the published order, seeds apart?"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from t2t_repro.reproduction.results import SCALES, Result
from t2t_repro.reproduction.tables import Table

# The published columns that a run measures, too: column -> score.
SCORES = {"PPL": "perplexity", "BLEU": "BLEU", "Weighted": "BLEU", "en-de": "BLEU"}
FEWEST_ROWS = 3  # that make an order


class Scores(NamedTuple):
    """What a row has in a column.

    Attributes:
        published: The paper's value.
        measured: Ours, one for each seed.
    """

    published: float
    measured: list[float]


def agreement_notes(table: Table, results: Sequence[Result]) -> list[str]:
    """Say how far what was measured agrees with the published table, and with itself.

    Args:
        table: The table.
        results: What was measured, of any system.

    Returns:
        For each scale and column up to two lines: how many pairs of rows have the
        published order, where three rows or more are measured, and how far seeds of
        one row lie apart, where a row has two.
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
            notes.append(f"{scale}, {score}: {order} (chance: half of them).")
        spread = pooled_deviation([row.measured for row in rows])
        if spread is not None:
            deviation = f"standard deviation between seeds of a row {spread:.2f}"
            notes.append(f"{scale}, {score}: {deviation}.")
    return notes


def pairs_in_order(rows: Sequence[Scores]) -> tuple[int, int]:
    """Count the pairs of rows whose mean scores have the published order.

    Kendall 1938: without ties, his tau is `2 * same / pairs - 1`.

    Returns:
        The pairs of the same order, and all whose published values differ.
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
    """Return the standard deviation about the groups' own means.

    Returns:
        The square root of the squares' sum over the degrees of freedom; None where no
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
    """Collect the rows that have both a published value and a measured one."""
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
