from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from t2t_repro.errors import UserError
from t2t_repro.features.parsing.bracketing import (
    brackets,
    consensus_tree,
    pairwise_f1,
    score_trees,
)
from t2t_repro.features.parsing.trees import Leaf, Tree, read_trees
from tests.support.random_trees import random_tree


def parsed(*lines):
    return [tree for _, tree in read_trees(lines)]


def scores(found, true):
    return score_trees(parsed(found), parsed(true))


def test_precision_and_recall_count_brackets_and_not_tags():
    # Found S and NP(0,1); true S, NP(0,1), VP(1,2).
    found = scores("(S (NP (XX a)) (XX b))", "(S (NP (NN a)) (VP (VB b)))")
    assert found.precision == 100
    assert found.recall == pytest.approx(100 * 2 / 3)
    assert found.f1 == pytest.approx(100 * 4 / 5)
    assert found.complete_match == 0


def test_punctuation_and_constituents_of_punctuation_do_not_count():
    true = "(S (NP (NN a) (, ,)) (VP (VB b)) (PRN (. .)))"
    found = "(S (NP (XX a)) (XX ,) (VP (XX b) (XX .)))"
    assert scores(found, true).f1 == 100


def test_the_tags_of_the_reference_define_punctuation():
    assert scores("(S (NP (, a)) (NN b))", "(S (NN a) (NN b))").precision == 50


def test_advp_and_prt_are_the_same_label():
    assert scores("(VP (VB a) (PRT (RP b)))", "(VP (VB a) (ADVP (RP b)))").f1 == 100


def test_repeated_brackets_match_as_often_as_both_trees_repeat_them():
    found = scores("(NP (NP (NP (NN a))))", "(NP (NP (NN a)))")
    assert found.precision == pytest.approx(100 * 2 / 3)
    assert found.recall == 100


def test_pairwise_f1_is_that_of_each_pair():
    given = parsed(
        "(S (NP (NN a)) (VP (VB b) (NP (NN c))))",
        "(S (NP (NN a) (NN b)) (NP (NN c)))",
        "(NP (NN a) (NN b) (NN c))",
        "(S (NP (NN a)) (, b) (NP (NN c)))",
    )
    expected = [[score_trees([one], [other]).f1 for other in given] for one in given]
    assert pairwise_f1(given) == expected
    assert expected[0][1] == pytest.approx(100 * 2 * 2 / 7)
    # The truth defines punctuation: without b, the second and the last are equal.
    assert expected[1][3] == 100
    assert expected[3][1] == pytest.approx(100 * 2 * 2 / 6)


def test_two_trees_without_brackets_are_alike():
    """Otherwise, minimum Bayes risk would never choose such a tree."""
    given = parsed("(CD 1)", "(NP (CD 1))")
    assert pairwise_f1(given) == [[100, 0], [0, 100]]
    assert pairwise_f1(parsed("(NP (. .))", "(. .)")) == [[100, 100], [100, 100]]


def test_sentences_of_more_than_40_words_do_not_count_for_f1_up_to_40():
    long = f"(S {' '.join(f'(NN w{i})' for i in range(41))})"
    found = score_trees(
        parsed(long.replace("(S", "(NP"), "(NP (NN a))"), parsed(long, "(NP (NN a))")
    )
    assert found.f1 == 50
    assert (found.f1_up_to_40, found.sentences_up_to_40) == (100, 1)


def test_a_tree_without_brackets_does_not_divide_by_zero():
    assert scores("(NN a)", "(NN a)").f1 == 0
    assert scores("(NN a)", "(NN a)").complete_match == 100


def test_different_words_are_refused():
    with pytest.raises(UserError, match="tree 1 has other words"):
        scores("(S (NN a))", "(S (NN b))")
    with pytest.raises(UserError, match="received 1 tree and 0 references"):
        score_trees(parsed("(NN a)"), [])


GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "evalb.json").read_text(encoding="utf-8")
)


def golden_trees(side):
    return parsed(*(pair[side] for pair in GOLDEN["pairs"]))


def test_the_counts_of_each_tree_equal_those_of_evalb():
    for pair in GOLDEN["pairs"]:
        (found,), (true,) = parsed(pair["found"]), parsed(pair["true"])
        tags = [leaf.tag for leaf in true.leaves]
        ours = brackets(true, tags), brackets(found, tags)
        matched = (ours[0] & ours[1]).total()
        assert [matched, ours[0].total(), ours[1].total()] == pair["counts"]


def test_the_summary_equals_that_of_evalb():
    ours = score_trees(golden_trees("found"), golden_trees("true"))
    theirs = GOLDEN["summary"]
    # EVALB prints two decimals.
    for name, value in {
        "Bracketing Recall": ours.recall,
        "Bracketing Precision": ours.precision,
        "Bracketing FMeasure": ours.f1,
        "Complete match": ours.complete_match,
    }.items():
        assert value == pytest.approx(theirs[name][0], abs=0.005)
    assert ours.f1_up_to_40 == pytest.approx(theirs["Bracketing FMeasure"][1], abs=5e-3)
    assert ours.sentences_up_to_40 == theirs["Number of Valid sentence"][1]


FLAT, LEFT, RIGHT = parsed(
    "(TOP (S (A a) (B b) (C c)))",
    "(TOP (S (X (A a) (B b)) (C c)))",
    "(TOP (S (A a) (Y (B b) (C c))))",
)


def test_a_constituent_needs_more_than_half_of_the_weight():
    assert consensus_tree([LEFT, RIGHT], [3, 2]) == LEFT
    assert consensus_tree([LEFT, RIGHT], [2, 2]) == FLAT
    assert consensus_tree([LEFT, RIGHT, FLAT], [0.4, 0.3, 0.3]) == FLAT


def test_one_tree_is_its_own_consensus_with_its_tags():
    assert consensus_tree([RIGHT], [0.1]) == RIGHT
    (other,) = parsed("(TOP (S (P a) (Q b) (R c)))")
    assert consensus_tree([other, RIGHT, RIGHT], [1, 1, 1]).leaves == other.leaves


def test_trees_without_leaves_have_an_empty_consensus():
    assert consensus_tree([Tree((), ())] * 2, [1, 1]) == Tree((), ())


def test_a_repeated_constituent_counts_as_often_as_most_trees_have_it():
    once, twice, thrice = parsed(
        "(TOP (NP (A a)))", "(TOP (NP (NP (A a))))", "(TOP (NP (NP (NP (A a)))))"
    )
    assert consensus_tree([once, twice, thrice], [1, 1, 1]) == twice
    assert consensus_tree([once, twice, thrice], [3, 1, 1]) == once


def test_constituents_of_one_span_keep_their_order():
    trees = parsed(
        "(TOP (S (VP (A a))))", "(TOP (S (VP (X (A a)))))", "(TOP (VP (A a)))"
    )
    for order in itertools.permutations(trees):
        assert str(consensus_tree(order, [1, 1, 1])) == "(TOP (S (VP (A a))))"


def test_brackets_elsewhere_do_not_change_the_order_within_a_span():
    trees = parsed(
        "(TOP (S (NP (X (A a)) (Y (A b))) (Q (P (A c)))))",
        "(TOP (S (A a) (A b) (Q (A c))))",
        "(TOP (S (A a) (A b) (P (A c))))",
        "(TOP (S (NP (X (A a)) (Y (A b))) (Q (A c))))",
        "(TOP (S (A a) (A b) (P (A c))))",
    )
    assert "(Q (P (A c)))" in str(consensus_tree(trees, [1, 1, 1, 1, 1]))


@pytest.mark.parametrize("seed", range(10))
def test_no_set_of_constituents_has_a_better_expected_score(seed):
    """Brute force over all sets of the constituents that any tree has."""
    generator = random.Random(seed)
    leaves = [Leaf("X", str(number)) for number in range(4)]
    trees = [random_tree(generator, leaves) for _ in range(3)]
    draws = [generator.random() for _ in trees]
    weights = [draw / sum(draws) for draw in draws]
    agreed = consensus_tree(trees, weights)
    (written,) = parsed(str(agreed))
    assert written == agreed  # it is a tree, in preorder

    def expected_score(chosen) -> float:
        correct = sum(
            weight * len(chosen & set(tree.constituents))
            for tree, weight in zip(trees, weights, strict=True)
        )
        return 2 * correct - len(chosen)

    candidates = list({c for tree in trees for c in tree.constituents})
    best = max(
        expected_score(set(chosen))
        for size in range(len(candidates) + 1)
        for chosen in itertools.combinations(candidates, size)
    )
    assert expected_score(set(agreed.constituents)) == pytest.approx(best)
