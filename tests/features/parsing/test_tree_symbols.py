from __future__ import annotations

import itertools
import random

import pytest

from t2t_repro.features.parsing.tree_symbols import (
    from_symbols,
    leaf_partners,
    to_symbols,
)
from t2t_repro.features.parsing.trees import read_trees
from tests.support.random_trees import random_tree

WORDS = ["John", "runs"]


def tree_of(text):
    return next(read_trees([text]))[1]


def test_the_symbols_equal_those_of_vinyals_et_al():
    tree = tree_of("(TOP (S (NP (NNP John)) (VP (VBZ runs))))")
    assert " ".join(to_symbols(tree)) == "(S (NP XX )NP (VP XX )VP )S"
    assert to_symbols(tree, leaves="tag")[2] == "NNP"


@pytest.mark.parametrize(
    ("word", "symbol"),
    [
        ("John", "j/NN"),
        ("john", "j/NN"),
        ("1984", "0/NN"),
        ("\u00e9t\u00e9", "*/NN"),
        ("-LRB-", "-/NN"),
        ("/", "//NN"),
        ("%", "%/NN"),
    ],
)
def test_a_leaf_can_have_the_initial_of_its_word(word, symbol):
    assert to_symbols(tree_of(f"(NP (NN {word}))"), leaves="initial")[1] == symbol


@pytest.mark.parametrize("leaves", ["tag", "initial"])
def test_the_symbols_and_the_words_of_a_tree_give_the_tree(leaves):
    for seed in range(50):
        tree = random_tree(random.Random(seed))
        symbols = to_symbols(tree, leaves=leaves)
        found = from_symbols(symbols, tree.words, leaves=leaves)
        assert found.tree == tree
        assert found.repairs == ()


JOHN_RUNS = "(S (XX John) (XX runs))"


@pytest.mark.parametrize(
    ("symbols", "tree", "fault"),
    [
        ("(S XX XX XX )S", JOHN_RUNS, "leaf without a word"),
        ("(S XX )S", "(S (XX John)) (XX runs)", "word without a leaf"),
        ("(S (NP XX )NP XX", "(S (NP (XX John)) (XX runs))", "opening bracket without"),
        ("XX )NP XX )S", "(S (NP (XX John)) (XX runs))", "closing bracket without"),
        ("(S (NP XX )VP XX )S", "(S (NP (XX John)) (XX runs))", "with another label"),
        ("(S (NP )NP XX XX )S", JOHN_RUNS, "constituent without a word"),
        ("(S <unk> ( XX XX )S", JOHN_RUNS, "not a symbol of a tree"),
        ("", "(XX John) (XX runs)", "word without a leaf"),
        (")S XX XX", "(XX John) (XX runs)", "closing bracket without"),
    ],
)
def test_malformed_symbols_are_repaired_and_their_faults_named(symbols, tree, fault):
    found = from_symbols(symbols.split(), WORDS)
    assert str(found.tree) == f"(TOP {tree})"
    assert [fault in named for named in found.repairs] == [True]


NP, VP = "(NP (DT the) (JJ old) (NN bird))", "(VP (VBZ sings))"


@pytest.mark.parametrize(
    ("leaves", "tree", "fault"),
    [
        ("t/DT b/NN", "(NP (DT the) (XX old) (NN bird))", "word without a leaf"),
        ("t/DT o/JJ", "(NP (DT the) (JJ old) (XX bird))", "word without a leaf"),
        ("o/JJ b/NN", "(NP (XX the) (JJ old) (NN bird))", "word without a leaf"),
        ("t/DT o/JJ b/NN b/NN", NP, "leaf without a word"),
        ("t/DT x/JJ b/NN", NP, "leaf with another word's initial"),
    ],
)
def test_leaves_with_initials_keep_their_words_if_others_are_skipped(
    leaves, tree, fault
):
    symbols = f"(S (NP {leaves} )NP (VP s/VBZ )VP )S".split()
    found = from_symbols(symbols, ["the", "old", "bird", "sings"], leaves="initial")
    assert str(found.tree) == f"(TOP (S {tree} {VP}))"
    assert found.repairs == (fault,)


def test_words_after_the_last_leaf_follow_it():
    found = from_symbols(["(NP", "t/DT", ")NP"], ["the", "old"], leaves="initial")
    assert str(found.tree) == "(TOP (NP (DT the)) (XX old))"


@pytest.mark.parametrize("leaves", ["any", "tag", "initial"])
def test_any_symbols_become_a_tree_over_exactly_the_words(leaves):
    symbols = ["(S", ")S", "(NP", ")NP", "XX", "r/NN", "<unk>", "r"]
    short = itertools.product(symbols, repeat=4)
    draw = random.Random(0)
    for written in (*short, *(draw.choices(symbols, k=9) for _ in range(500))):
        tree = from_symbols(written, WORDS, leaves=leaves).tree
        assert list(tree.words) == WORDS
        assert next(read_trees([str(tree)]))[1] == tree


def edits_of(partners, written, wanted):
    pairs = [(i, j) for i, j in enumerate(partners) if j is not None]
    differing = sum(written[i] != wanted[j] for i, j in pairs)
    return differing + len(written) + len(wanted) - 2 * len(pairs)


def ascending(partners):
    found = [j for j in partners if j is not None]
    return all(a < b for a, b in itertools.pairwise(found))


def alignments(written, wanted):
    choices = itertools.product([None, *range(len(wanted))], repeat=len(written))
    return filter(ascending, choices)


def preference(partners, wanted):
    """Return the documented ranks of the partners, the last element first."""
    ranks, end = [], len(wanted)
    for partner in reversed(partners):
        if partner is None:
            ranks.append(1)
        else:
            skipped = end - 1 - partner
            ranks.append(0 if skipped == 0 else 1 + skipped)
            end = partner
    return ranks


TEXTS = ["".join(x) for n in range(4) for x in itertools.product("abc", repeat=n)]


def test_the_alignment_has_the_fewest_edits_and_the_documented_partners():
    for written, wanted in itertools.product(TEXTS, TEXTS):
        best = min(
            alignments(written, wanted),
            key=lambda partners: (
                edits_of(partners, written, wanted),
                preference(partners, wanted),
            ),
        )
        assert leaf_partners(written, wanted) == list(best)
