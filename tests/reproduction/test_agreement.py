from __future__ import annotations

import dataclasses
import statistics

import pytest

from t2t_repro.reproduction.agreement import (
    Scores,
    agreement_notes,
    grouped,
    order_of,
    order_text,
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
    assert order_of(rows(*scores))[:2] == expected


def test_the_seeds_of_a_row_are_averaged_before_rows_are_compared():
    means = [Scores(1, [10, 30]), Scores(2, [19, 20])]
    assert order_of(means)[:2] == (0, 1)


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


def test_notes_report_order_of_and_the_spread():
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


def test_the_sentence_names_chance_and_the_p_value():
    test = order_of(rows((1, 10), (2, 30), (3, 20)))
    # Of the six orders, one has 3 pairs, two have 2, two have 1 and one has 0.
    assert order_text(test) == (
        "2 of 3 pairs of rows have the published order (half is chance; 95 % of random "
        "orders have 0 to 3, p = 0.50)."
    )


def test_rows_of_table_3_are_grouped_by_the_value_that_they_vary():
    groups = grouped(table("table3"), "base")
    names = {name: [row.name for row in part.rows] for name, part in groups.items()}
    assert names == {
        "(A) h": ["base", "a_h1", "a_h4", "a_h16", "a_h32"],
        "(B) d_k": ["base", "b_dk16", "b_dk32"],
        "(C) N": ["base", "c_n2", "c_n4", "c_n8"],
        "(C) d_model": ["base", "c_d256", "c_d1024"],
        "(C) d_ff": ["base", "c_dff1024", "c_dff4096"],
        "(D) P_drop": ["base", "d_dr0", "d_dr2"],
        "(D) eps_ls": ["base", "d_ls0", "d_ls2"],
    }
