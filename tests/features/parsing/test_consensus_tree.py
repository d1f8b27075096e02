from __future__ import annotations

import itertools

import numpy as np
import pytest

from t2t_repro.features.parsing.bracketing import consensus_tree
from t2t_repro.features.parsing.trees import Constituent, Leaf, Tree, read_trees


def read(*lines):
    return [tree for _, tree in read_trees(lines)]


FLAT, LEFT, RIGHT = read(
    "(TOP (S (A a) (B b) (C c)))",
    "(TOP (S (X (A a) (B b)) (C c)))",
    "(TOP (S (A a) (Y (B b) (C c))))",
)


def test_a_constituent_needs_more_than_half_of_the_weight():
    assert consensus_tree([LEFT, RIGHT], [3, 2]) == LEFT
    assert consensus_tree([LEFT, RIGHT], [2, 2]) == FLAT
    assert consensus_tree([LEFT, RIGHT, FLAT], [0.4, 0.3, 0.3]) == FLAT


def test_the_consensus_need_not_be_one_of_the_trees():
    one, two, three = read(
        "(TOP (S (X (A a)) (Y (B b)) (C c)))",
        "(TOP (S (X (A a)) (B b) (Z (C c))))",
        "(TOP (S (A a) (Y (B b)) (Z (C c))))",
    )
    (expected,) = read("(TOP (S (X (A a)) (Y (B b)) (Z (C c))))")
    assert consensus_tree([one, two, three], [1, 1, 1]) == expected


def test_one_tree_is_its_own_consensus_with_its_tags():
    assert consensus_tree([RIGHT], [0.1]) == RIGHT
    (other,) = read("(TOP (S (P a) (Q b) (R c)))")
    assert consensus_tree([other, RIGHT, RIGHT], [1, 1, 1]).leaves == other.leaves


def test_trees_without_leaves_have_an_empty_consensus():
    assert consensus_tree([Tree((), ())] * 2, [1, 1]) == Tree((), ())


def test_a_repeated_constituent_counts_as_often_as_most_trees_have_it():
    once, twice, thrice = read(
        "(TOP (NP (A a)))", "(TOP (NP (NP (A a))))", "(TOP (NP (NP (NP (A a)))))"
    )
    assert consensus_tree([once, twice, thrice], [1, 1, 1]) == twice
    assert consensus_tree([once, twice, thrice], [3, 1, 1]) == once


def test_constituents_of_one_span_keep_their_order():
    trees = read("(TOP (S (VP (A a))))", "(TOP (S (VP (X (A a)))))", "(TOP (VP (A a)))")
    for order in itertools.permutations(trees):
        assert str(consensus_tree(order, [1, 1, 1])) == "(TOP (S (VP (A a))))"


def test_brackets_elsewhere_do_not_change_the_order_within_a_span():
    trees = read(
        "(TOP (S (NP (X (A a)) (Y (A b))) (Q (P (A c)))))",
        "(TOP (S (A a) (A b) (Q (A c))))",
        "(TOP (S (A a) (A b) (P (A c))))",
        "(TOP (S (NP (X (A a)) (Y (A b))) (Q (A c))))",
        "(TOP (S (A a) (A b) (P (A c))))",
    )
    assert "(Q (P (A c)))" in str(consensus_tree(trees, [1, 1, 1, 1, 1]))


def random_tree(rng: np.random.Generator, words: int) -> Tree:
    """Return nested constituents over some words."""
    found: list[Constituent] = []

    def split(start: int, end: int) -> None:
        if rng.random() < 0.7:
            found.append(Constituent(str(rng.choice(["A", "B"])), start, end))
        if end - start > 1:
            middle = int(rng.integers(start + 1, end))
            split(start, middle)
            split(middle, end)

    split(0, words)
    return Tree(tuple(Leaf("X", str(n)) for n in range(words)), tuple(found))


@pytest.mark.parametrize("seed", range(20))
def test_no_set_of_constituents_has_a_better_expected_score(seed):
    """Brute force over all sets of the constituents that any tree has."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, 4) for _ in range(3)]
    weights = rng.dirichlet(np.ones(3))
    agreed = consensus_tree(trees, [float(w) for w in weights])
    (written,) = read(str(agreed))
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
