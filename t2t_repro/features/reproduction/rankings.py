"""Rank rows by our scores at the long scale, beside their published ranks."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from t2t_repro.features.reproduction.order_agreement import (
    ALL_ROWS,
    GroupAgreement,
    OrderTest,
    compared_scores,
    decimals,
    group_agreements,
    measured_values,
    p_value_text,
)
from t2t_repro.features.reproduction.paper_tables import Table
from t2t_repro.features.reproduction.report_writer import (
    Block,
    Column,
    make_block,
    mean_and_spread,
    published_text,
)
from t2t_repro.features.reproduction.result_files import Result, averaged_score

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
        scores = compared_scores(table, column, SCALE)
        if scores and (rows := _rank_rows(table, column, scores, long)):
            found.append(Ranking(column, scores[0], rows))
    return found


def _rank_rows(
    table: Table, column: str, scores: Sequence[str], results: Sequence[Result]
) -> list[RankedRow]:
    """Rank the rows that have a published value and both scores, by their means."""
    rows, published, measured = [], [], []
    for row in table.rows:
        value = row.published.get(column)
        values = [measured_values(row, score, results) for score in scores]
        if isinstance(value, int | float) and all(values):
            rows.append(row.name)
            published.append(float(value))
            measured.append(values)
    columns = [published, *([statistics.mean(x[i]) for x in measured] for i in (0, 1))]
    is_bleu = scores[0].startswith("BLEU")
    all_ranks = [ranks(values, higher_is_better=is_bleu) for values in columns]
    ranked = [
        RankedRow(row, value, published_rank, last, rank, averaged, averaged_rank)
        for row, value, (last, averaged), published_rank, rank, averaged_rank in zip(
            rows, published, measured, *all_ranks, strict=True
        )
    ]
    return sorted(ranked, key=lambda row: row.rank)


def ranks(values: Sequence[float], *, higher_is_better: bool) -> list[int]:
    """Return the rank of each value, from 1; equal values share the best rank."""
    costs = [-value if higher_is_better else value for value in values]
    return [1 + sum(other < cost for other in costs) for cost in costs]


def ranking_blocks(table: Table, results: Sequence[Result]) -> list[Block]:
    """Return a table per ranking, and one with the agreement per group.

    Args:
        table: The table.
        results: Results of any systems.

    Returns:
        Nothing without results of the long scale. Only Table 3 has groups.
    """
    blocks = [_ranking_block(table, ranking) for ranking in rankings(table, results)]
    agreements = group_agreements(table, results, SCALE)
    if {each.group for each in agreements} > {ALL_ROWS}:
        blocks.append(_agreement_block(table, agreements))
    return blocks


def ranking_data(table: Table, results: Sequence[Result]) -> dict[str, Any]:
    """Return the rankings and the agreement as JSON values."""
    return {
        "rankings": [
            {**ranking._asdict(), "rows": [row._asdict() for row in ranking.rows]}
            for ranking in rankings(table, results)
        ],
        "agreement": [
            {"group": each.group, "column": each.column, "score": each.score}
            | each.test._asdict()
            for each in group_agreements(table, results, SCALE)
        ],
    }


def _ranking_block(table: Table, ranking: Ranking) -> Block:
    score, places = ranking.score, decimals(ranking.score)
    columns = [
        Column[RankedRow]("row", lambda row: row.row, is_number=False),
        Column[RankedRow](
            ranking.column, lambda row: published_text(row.published, ranking.column)
        ),
        Column[RankedRow]("published rank", lambda row: str(row.published_rank)),
        Column[RankedRow](score, lambda row: mean_and_spread(row.last, places)),
        Column[RankedRow]("our rank", lambda row: str(row.rank)),
        Column[RankedRow](
            averaged_score(score), lambda row: mean_and_spread(row.averaged, places)
        ),
        Column[RankedRow](
            averaged_score("our rank"), lambda row: str(row.averaged_rank)
        ),
        Column[RankedRow]("seeds", lambda row: str(len(row.last))),
    ]
    title = (
        f"Long scale, {table.text(SCALE)}, by {score} of the last checkpoint; "
        "averaged: the average of the last checkpoints:"
    )
    return make_block(columns, ranking.rows, title)


def _agreement_block(table: Table, agreements: Sequence[GroupAgreement]) -> Block:
    """Return a table with a line per group and a column per score."""
    tests = {(each.group, each.score): each.test for each in agreements}
    groups = list(dict.fromkeys(each.group for each in agreements))
    columns = [
        Column[str]("rows", lambda group: group, is_number=False),
        *(
            _agreement_column(score, tests)
            for score in dict.fromkeys(each.score for each in agreements)
        ),
    ]
    title = (
        f"Long scale, {table.text(SCALE)}, pairs of rows in the published order "
        "(95 % of random orders), p = share of random orders that agree as well; "
        "groups include base:"
    )
    return make_block(columns, groups, title)


def _agreement_column(
    score: str, tests: Mapping[tuple[str, str], OrderTest]
) -> Column[str]:
    def cell(group: str) -> str:
        test = tests.get((group, score))
        if test is None:
            return ""
        return (
            f"{test.same} of {test.pairs} ({test.low} to {test.high}), "
            f"{p_value_text(test.p_value, 3)}"
        )

    return Column(score, cell)
