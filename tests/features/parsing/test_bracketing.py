from __future__ import annotations

import json
from pathlib import Path

import pytest

from t2t_repro.errors import UserError
from t2t_repro.features.parsing.bracketing import brackets, pairwise_f1, score_trees
from t2t_repro.features.parsing.trees import read_trees


def trees(*lines):
    return [tree for _, tree in read_trees(lines)]


def scores(found, true):
    return score_trees(trees(found), trees(true))


def test_a_tree_equals_itself():
    tree = "(TOP (S (NP (NN a)) (VP (VB b) (NP (NN c))) (. .)))"
    found = scores(tree, tree)
    assert (found.f1, found.precision, found.recall, found.complete_match) == (100,) * 4


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
    given = trees(
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
    given = trees("(CD 1)", "(NP (CD 1))")
    assert pairwise_f1(given) == [[100, 0], [0, 100]]
    assert pairwise_f1(trees("(NP (. .))", "(. .)")) == [[100, 100], [100, 100]]


def test_scores_sum_the_brackets_of_all_trees():
    true = trees("(S (NP (NN a)) (VP (VB b)))", "(NP (NN a))")
    found = trees("(S (NN a) (VB b))", "(NP (NN a))")
    assert score_trees(found, true).recall == pytest.approx(100 * 2 / 4)


def test_sentences_of_more_than_40_words_do_not_count_for_f1_up_to_40():
    long = f"(S {' '.join(f'(NN w{i})' for i in range(41))})"
    found = score_trees(
        trees(long.replace("(S", "(NP"), "(NP (NN a))"), trees(long, "(NP (NN a))")
    )
    assert found.f1 == 50
    assert (found.f1_up_to_40, found.sentences_up_to_40) == (100, 1)


def test_a_tree_without_brackets_does_not_divide_by_zero():
    assert scores("(NN a)", "(NN a)").f1 == 0
    assert scores("(NN a)", "(NN a)").complete_match == 100


def test_different_words_are_refused():
    with pytest.raises(UserError, match="tree 1 has other words"):
        scores("(S (NN a))", "(S (NN b))")


def test_different_numbers_of_trees_are_refused():
    with pytest.raises(UserError, match="received 1 tree and 0 references"):
        score_trees(trees("(NN a)"), [])


GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "evalb.json").read_text(encoding="utf-8")
)


def golden_trees(side):
    return trees(*(pair[side] for pair in GOLDEN["pairs"]))


def test_the_counts_of_each_tree_equal_those_of_evalb():
    for pair in GOLDEN["pairs"]:
        (found,), (true,) = trees(pair["found"]), trees(pair["true"])
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
