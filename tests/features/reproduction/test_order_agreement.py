from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from t2t_repro.features.reproduction.order_agreement import (
    Scores,
    agreement_notes,
    group_agreements,
    group_of,
    grouped,
    order_of,
    order_test,
    order_text,
    p_value_text,
    pooled_deviation,
)
from t2t_repro.features.reproduction.paper_tables import find_table as table
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
    assert order_of(rows(*scores), "BLEU")[:2] == expected


def test_the_seeds_of_a_row_are_averaged_before_rows_are_compared():
    means = [Scores(1, [10, 30]), Scores(2, [19, 20])]
    assert order_of(means, "BLEU")[:2] == (0, 1)


def test_the_spread_is_about_the_mean_of_each_row():
    """A row with one seed does not count."""
    groups = [[0.0, 2.0], [10.0, 14.0], [9.0], []]
    assert pooled_deviation(groups) == pytest.approx(5**0.5)
    assert pooled_deviation([[1.0], [5.0]]) is None


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


def test_results_of_different_scales_are_not_mixed():
    measured = results("BLEU (dev)", c_n2=[20.0], c_n4=[24.0], c_n8=[23.0])
    measured[0] = dataclasses.replace(measured[0], scale="paper")
    assert agreement_notes(table("table3"), measured) == []


def test_the_sentence_names_chance_and_the_p_value():
    test = order_of(rows((1, 10), (2, 30), (3, 20)), "BLEU")
    # Of the six orders, one has 3 pairs, two have 2, two have 1 and one has 0.
    assert order_text(test) == (
        "2 of 3 pairs of rows have the published order (half is chance; 95 % of random "
        "orders have 0 to 3, p = 0.50)."
    )


def test_rows_of_table_3_are_grouped_by_the_value_that_they_vary():
    groups = grouped(table("table3"), "base", group_of, 3)
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


def long_results(**scores):
    """Return a long result per row of Table 3: nll and BLEU, last and averaged."""
    names = ("nll (dev)", "BLEU (dev+test)")
    names = (*names, *(f"{name}, averaged" for name in names))
    return [
        dataclasses.replace(
            RESULT,
            system="transformer_base" + (f"_{row}" if row != "base" else ""),
            scale="long",
            scores=dict(zip(names, values, strict=True)) | {"BLEU (dev)": 1.0},
        )
        for row, values in scores.items()
    ]


# Published: 4.92 and 25.8 (base), 5.19 and 25.3 (c_n4), 6.11 and 23.7 (c_n2), 4.92 and
# 25.7 (e_learned). Of the three pairs of base and group C, nll (dev) has 3 in this
# order, its average 2, BLEU 1, and its average 0.
LONG = long_results(
    base=[2.0, 31.0, 2.1, 30.0],
    c_n4=[2.1, 33.0, 2.0, 32.0],
    c_n2=[2.2, 32.0, 2.2, 33.0],
    e_learned=[1.9, 30.5, 1.8, 34.0],
)


def test_the_spread_of_an_nll_has_three_decimals():
    seeds = [
        dataclasses.replace(RESULT, scale="long", seed=seed, scores={"nll (dev)": nll})
        for seed, nll in ((1, 2.001), (2, 2.003))
    ]
    (spread,) = agreement_notes(table("table3"), seeds)
    assert spread.endswith("seeds of the same row: 0.001.")


def test_groups_of_table_3_are_compared_by_their_letter_with_the_baseline():
    found = {
        (each.group, each.score): (each.column, each.test.same, each.test.pairs)
        for each in group_agreements(table("table3"), LONG, "long")
    }
    nll, bleu = "nll (dev)", "BLEU (dev+test)"
    assert found == {
        ("all", nll): ("PPL", 5, 5),
        ("all", f"{nll}, averaged"): ("PPL", 4, 5),
        ("all", bleu): ("BLEU", 2, 6),
        ("all", f"{bleu}, averaged"): ("BLEU", 2, 6),
        ("(C)", nll): ("PPL", 3, 3),
        ("(C)", f"{nll}, averaged"): ("PPL", 2, 3),
        ("(C)", bleu): ("BLEU", 1, 3),
        ("(C)", f"{bleu}, averaged"): ("BLEU", 0, 3),
        # Both rows have the perplexity 4.92 in the paper.
        ("(E)", bleu): ("BLEU", 1, 1),
        ("(E)", f"{bleu}, averaged"): ("BLEU", 0, 1),
    }
    assert group_agreements(table("table3"), LONG, "small") == []


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(0.0412, 2, "p = 0.04"), (0.004, 2, "p < 0.01"), (0.004, 3, "p = 0.004")],
)
def test_a_p_value_is_never_rounded_to_zero(value, places, text):
    assert p_value_text(value, places) == text


def pairs_in_order(published, measured):
    pairs = list(itertools.combinations(range(len(published)), 2))
    differ = [(a, b) for a, b in pairs if published[a] != published[b]]
    same = [
        (published[a] < published[b]) == (measured[a] < measured[b])
        for a, b in differ
        if measured[a] != measured[b]
    ]
    return sum(same), len(differ)


PUBLISHED = [4.92, 5.29, 5.00, 4.91, 5.01, 4.92]
MEASURED = [10.4, 10.36, 9.88, 10.71, 11.27, 9.5]


@pytest.mark.parametrize("count", [3, 4, 6])
def test_the_agreement_of_few_rows_is_that_of_all_permutations(count):
    published, measured = PUBLISHED[:count], MEASURED[:count]
    same, pairs = pairs_in_order(published, measured)
    orders = [
        pairs_in_order(published, order)[0]
        for order in itertools.permutations(measured)
    ]
    found = order_test(published, measured)
    assert (found.same, found.pairs) == (same, pairs)
    assert found.p_value == pytest.approx(np.mean([x >= same for x in orders]))
    # At most 2.5 % of the orders lie below the interval, and as many above it.
    below, above = (x < found.low for x in orders), (x > found.high for x in orders)
    assert max(np.mean([*below]), np.mean([*above])) <= 0.025
    assert np.mean([x <= found.low for x in orders]) >= 0.025


def test_many_rows_are_sampled_around_half_of_the_pairs():
    values = [float(x) for x in range(12)]
    found = order_test(values, values)
    assert (found.same, found.pairs) == (66, 66)
    assert found.p_value == pytest.approx(1 / 2_000_001)
    # Kendall: the variance of the number of pairs is n (n - 1) (2 n + 5) / 72.
    deviation = (12 * 11 * 29 / 72) ** 0.5
    assert found.low == pytest.approx(33 - 1.96 * deviation, abs=1.5)
    assert found.high == pytest.approx(33 + 1.96 * deviation, abs=1.5)
    assert order_test(values, values) == found


def test_small_published_differences_are_no_order():
    published = [4.87, 4.91, 4.92, 4.97, 5.29]
    found = order_test(published, [1, 2, 3, 4, 5], least=0.05)
    assert (found.same, found.pairs) == (8, 8)  # 4.92 - 4.87 is 0.05


def test_rows_need_both_values():
    with pytest.raises(ValueError, match="Received 2 and 1"):
        order_test([1, 2], [1])
