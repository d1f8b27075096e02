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
        # A published tie has no order to be kept, a measured one does not keep it.
        ([(1, 10), (1, 20), (2, 30)], (2, 2)),
        ([(1, 10), (2, 10), (3, 30)], (2, 3)),
    ],
)
def test_pairs_of_rows_are_counted_that_have_the_published_order(scores, expected):
    assert pairs_in_order(rows(*scores)) == expected


def test_the_seeds_of_a_row_are_averaged_before_rows_are_compared():
    assert pairs_in_order([Scores(1, [10, 30]), Scores(2, [19, 20])]) == (0, 1)


def test_a_row_of_one_seed_says_nothing_of_the_spread():
    assert pooled_deviation([[1.0], [5.0]]) is None
    group = [1.0, 2.0, 4.0]
    assert pooled_deviation([group, [9.0]]) == pytest.approx(statistics.stdev(group))


def test_the_spread_is_about_each_rows_own_mean():
    assert pooled_deviation([[0.0, 2.0], [10.0, 14.0]]) == pytest.approx(5**0.5)


def results(column, **scores):
    return [
        dataclasses.replace(
            RESULT, system=f"transformer_base_{row}", seed=seed, scores={column: value}
        )
        for row, values in scores.items()
        for seed, value in enumerate(values)
    ]


def test_a_table_says_how_many_pairs_and_how_large_the_spread():
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


def test_scales_are_kept_apart():
    measured = results("BLEU (dev)", c_n2=[20.0], c_n4=[24.0], c_n8=[23.0])
    measured[0] = dataclasses.replace(measured[0], scale="paper")
    assert agreement_notes(table("table3"), measured) == []


@pytest.mark.parametrize("name", ["table2", "table4", "weighted", "sensitivity"])
def test_without_results_there_is_nothing_to_say(name):
    assert agreement_notes(table(name), []) == []
