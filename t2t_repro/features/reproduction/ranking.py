"""Rank the rows of a table at the long scale, beside their published ranks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from t2t_repro.features.reproduction.agreement import compared_scores, measured_values
from t2t_repro.features.reproduction.results import Result
from t2t_repro.features.reproduction.tables import Table

SCALE = "long"


class RankedRow(NamedTuple):
    """Ranks of a row among the measured rows; 1 is the best, and equal rows share one.

    Attributes:
        row: Name of the row.
        published: Value in the paper.
        published_rank: Its rank.
        last: Score of the last checkpoint per seed.
        rank: Rank of its mean.
        averaged: Score of the averaged checkpoint per seed.
        averaged_rank: Rank of its mean.
    """

    row: str
    published: float
    published_rank: int
    last: list[float]
    rank: int
    averaged: list[float]
    averaged_rank: int


class Ranking(NamedTuple):
    """Rows in the order of a score.

    Attributes:
        column: Published column.
        score: Name of our score, that of the last checkpoint.
        rows: Ranked rows, best first.
    """

    column: str
    score: str
    rows: list[RankedRow]


class _Measured(NamedTuple):
    """A row with a published value and both scores."""

    row: str
    published: float
    last: list[float]
    averaged: list[float]


def rankings(table: Table, results: Sequence[Result]) -> list[Ranking]:
    """Rank the rows of a table by our scores at the long scale.

    Args:
        table: The table.
        results: Results of any systems.

    Returns:
        A ranking per column, by the nll on dev for a perplexity, or by BLEU on dev and
        test. It holds the rows that have a published value, and a score of the last and
        of the averaged checkpoint. Rankings without rows are left out.
    """
    long = [result for result in results if result.scale == SCALE]
    found = []
    for column in table.columns:
        if scores := compared_scores(table, column, SCALE):
            last, averaged = scores
            if measured := _measured(table, column, last, averaged, long):
                found.append(Ranking(column, last, _ranked(measured, last)))
    return found


def _measured(
    table: Table, column: str, last: str, averaged: str, results: Sequence[Result]
) -> list[_Measured]:
    found = []
    for row in table.rows:
        published = row.published.get(column)
        values = [measured_values(row, score, results) for score in (last, averaged)]
        if isinstance(published, int | float) and all(values):
            found.append(_Measured(row.name, float(published), *values))
    return found


def _ranked(measured: Sequence[_Measured], score: str) -> list[RankedRow]:
    """Rank rows by the means of their seeds."""
    higher_is_better = score.startswith("BLEU")
    columns = (
        [each.published for each in measured],
        [statistics.mean(each.last) for each in measured],
        [statistics.mean(each.averaged) for each in measured],
    )
    all_ranks = [ranks(x, higher_is_better=higher_is_better) for x in columns]
    ranked = [
        RankedRow(
            row=each.row,
            published=each.published,
            published_rank=published_rank,
            last=each.last,
            rank=rank,
            averaged=each.averaged,
            averaged_rank=averaged_rank,
        )
        for each, published_rank, rank, averaged_rank in zip(
            measured, *all_ranks, strict=True
        )
    ]
    return sorted(ranked, key=lambda row: row.rank)


def ranks(values: Sequence[float], *, higher_is_better: bool) -> list[int]:
    """Return the rank of each value, from 1; equal values share the best rank."""
    costs = [-value if higher_is_better else value for value in values]
    return [1 + sum(other < cost for other in costs) for cost in costs]
