"""Report on the rankings of the long scale, and on their agreement per group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2t_repro.features.reproduction.agreement import (
    ALL_ROWS,
    GroupAgreement,
    decimals,
    group_agreements,
    p_value_text,
)
from t2t_repro.features.reproduction.permutation import OrderTest
from t2t_repro.features.reproduction.ranking import SCALE, RankedRow, Ranking, rankings
from t2t_repro.features.reproduction.report import (
    Block,
    Column,
    make_block,
    mean_and_spread,
    published_text,
)
from t2t_repro.features.reproduction.results import Result, averaged_score
from t2t_repro.features.reproduction.tables import Table


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
