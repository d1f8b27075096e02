from __future__ import annotations

import dataclasses
import statistics

import pytest

from t2t_repro.reproduction.agreement import (
    Scores,
    agreement_notes,
    pairs_in_order,
    pooled_deviation,
)
from t2t_repro.reproduction.lookup import find_table as table
from tests.support.result import RESULT


def rows(*scores):
    return [Scores(published, [measured]) for published, measured in scores]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([(1, 10), (2, 20), (3, 30)], (3, 3)),
        ([(1, 30), (2, 20), (3, 10)], (0, 3)),
        ([(1, 20), (2, 10), (3, 30)], (2, 3)),
        # Published ties do not count; a measured tie is not in order.
        ([(1, 10), (1, 20), (2, 30)], (2, 2)),
        ([(1, 10), (2, 10), (3, 30)], (2, 3)),
    ],
)
def test_pairs_of_rows_in_the_published_order_are_counted(scores, expected):
    assert pairs_in_order(rows(*scores)) == expected


def test_the_seeds_of_a_row_are_averaged_before_rows_are_compared():
    assert pairs_in_order([Scores(1, [10, 30]), Scores(2, [19, 20])]) == (0, 1)


def test_a_row_with_one_seed_does_not_count_for_the_spread():
    assert pooled_deviation([[1.0], [5.0]]) is None
    group = [1.0, 2.0, 4.0]
    assert pooled_deviation([group, [9.0]]) == pytest.approx(statistics.stdev(group))


def test_the_spread_is_about_the_mean_of_each_row():
    assert pooled_deviation([[0.0, 2.0], [10.0, 14.0]]) == pytest.approx(5**0.5)


def results(column, **scores):
    return [
        dataclasses.replace(
            RESULT, system=f"transformer_base_{row}", seed=seed, scores={column: value}
        )
        for row, values in scores.items()
        for seed, value in enumerate(values)
    ]


def test_notes_report_pairs_in_order_and_the_spread():
    # Published: 23.7, 25.3, 25.5.
    measured = results("BLEU (dev)", c_n2=[20.0, 22.0], c_n4=[24.0], c_n8=[23.0])
    order, spread = agreement_notes(table("table3"), measured)
    assert order.startswith("small, BLEU (dev): 2 of 3 pairs of rows")
    assert spread.startswith("small, BLEU (dev): standard deviation")
    assert spread.endswith(" 1.41.")


def test_perplexities_are_compared_with_perplexities():
    measured = results("perplexity (dev)", c_n2=[9.0], c_n4=[8.0], c_n8=[7.0])
    (order,) = agreement_notes(table("table3"), measured)
    assert order.startswith("small, perplexity (dev): 3 of 3 pairs")


def test_results_of_different_scales_are_not_mixed():
    measured = results("BLEU (dev)", c_n2=[20.0], c_n4=[24.0], c_n8=[23.0])
    measured[0] = dataclasses.replace(measured[0], scale="paper")
    assert agreement_notes(table("table3"), measured) == []


@pytest.mark.parametrize("name", ["table2", "table4", "weighted", "sensitivity"])
def test_without_results_there_are_no_notes(name):
    assert agreement_notes(table(name), []) == []
