"""Rankings of the rows at the long scale, and how they are shown."""

from __future__ import annotations

import dataclasses

import pytest

from t2t_repro.features.reproduction.paper_tables import find_table
from t2t_repro.features.reproduction.rankings import (
    ranking_blocks,
    ranking_data,
    ranks,
)
from tests.support.result import RESULT

TABLE = find_table("table3")
NAMES = ("nll (dev)", "nll (dev), averaged")
NAMES = (*NAMES, "BLEU (dev+test)", "BLEU (dev+test), averaged")


def result(row, seed, *scores, scale="long"):
    return dataclasses.replace(
        RESULT,
        system=f"transformer_base_{row}",
        scale=scale,
        seed=seed,
        scores=dict(zip(NAMES, scores, strict=False)) | {"perplexity (dev)": 1.0},
    )


# Published: 6.11 and 23.7 (c_n2), 5.19 and 25.3 (c_n4), 4.88 and 25.5 (c_n8).
RESULTS = [
    result("c_n2", 1, 2.5, 2.125, 30.0, 33.5),
    result("c_n2", 2, 2.0, 2.25, 31.0, 34.5),
    result("c_n4", 1, 2.0, 2.75, 32.0, 32.5),
    result("c_n8", 1, 2.375, 2.0, 29.0, 31.5),
    result("c_n8", 1, 1.0, 1.0, 1.0, 1.0, scale="small"),
    # Without a score of the average, a row is not ranked.
    result("c_d256", 1, 1.5),
]


def test_equal_values_share_the_better_rank():
    assert ranks([3.0, 1.0, 3.0, 2.0], higher_is_better=False) == [3, 1, 3, 2]
    assert ranks([3.0, 1.0, 3.0, 2.0], higher_is_better=True) == [1, 4, 1, 3]


@pytest.mark.parametrize("name", ["table1", "table3"])
def test_without_results_of_the_long_scale_nothing_is_shown(name):
    small = [x for x in RESULTS if x.scale == "small"]
    table = find_table(name)
    assert ranking_blocks(table, small) == []
    assert ranking_data(table, small) == {"rankings": [], "agreement": []}


def test_a_ranking_shows_published_values_and_both_scores():
    by_nll, by_bleu, _ = ranking_blocks(TABLE, RESULTS)
    assert by_nll.title.startswith(
        "Long scale, Multi30k en-de, by nll (dev) of the last"
    )
    assert by_nll.rows == [
        [
            *("row", "PPL", "published rank", "nll (dev)", "our rank"),
            *("nll (dev), averaged", "our rank, averaged", "seeds"),
        ],
        ["c_n4", "5.19", "2", "2.000", "1", "2.750", "3", "1"],
        ["c_n2", "6.11", "3", "2.250 ± 0.354", "2", "2.188 ± 0.088", "2", "2"],
        ["c_n8", "4.88", "1", "2.375", "3", "2.000", "1", "1"],
    ]
    assert by_bleu.rows[1:] == [
        ["c_n4", "25.3", "2", "32.00", "1", "32.50", "2", "1"],
        ["c_n2", "23.7", "3", "30.50 ± 0.71", "2", "34.00 ± 0.71", "1", "2"],
        ["c_n8", "25.5", "1", "29.00", "3", "31.50", "3", "1"],
    ]


def test_the_agreement_has_a_line_per_group_and_a_column_per_score():
    *_, agreement = ranking_blocks(TABLE, RESULTS)
    # The six orders of three rows have 3, 2, 2, 1, 1 and 0 pairs.
    headings, everything, group = agreement.rows
    assert headings == ["rows", *NAMES]
    assert [everything[0], group[0]] == ["all", "(C)"]
    assert group[2:] == [
        "2 of 3 (0 to 3), p = 0.500",
        "1 of 3 (0 to 3), p = 0.833",
        "0 of 3 (0 to 3), p = 1.000",
    ]


def test_json_has_the_seeds_the_ranks_and_the_agreement():
    data = ranking_data(TABLE, RESULTS)
    assert data["rankings"][0]["column"] == "PPL"
    assert data["rankings"][0]["rows"][1] == {
        "row": "c_n2",
        "published": 6.11,
        "published_rank": 3,
        "last": [2.5, 2.0],
        "rank": 2,
        "averaged": [2.125, 2.25],
        "averaged_rank": 2,
    }
    assert data["agreement"][-1] == {
        "group": "(C)",
        "column": "BLEU",
        "score": "BLEU (dev+test), averaged",
        "same": 0,
        "pairs": 3,
        "low": 0,
        "high": 3,
        "p_value": 1.0,
    }
