from __future__ import annotations

import itertools
import random

import pytest

from t2t_repro.text import tree_symbols
from t2t_repro.text.tree_symbols import from_symbols, to_symbols
from t2t_repro.text.trees import read_trees
from tests.support.random_trees import random_tree

WORDS = ["John", "runs"]


def tree_of(text):
    return next(read_trees([text]))[1]


def repaired(symbols, words=WORDS):
    return from_symbols(symbols.split(), words)


def test_the_symbols_are_those_of_vinyals_et_al():
    tree = tree_of("(TOP (S (NP (NNP John)) (VP (VBZ runs))))")
    assert " ".join(to_symbols(tree)) == "(S (NP XX )NP (VP XX )VP )S"
    assert to_symbols(tree, keep_tags=True)[2] == "NNP"


@pytest.mark.parametrize("seed", range(50))
def test_a_trees_symbols_and_its_words_give_the_tree(seed):
    tree = random_tree(random.Random(seed))
    found = from_symbols(to_symbols(tree, keep_tags=True), tree.words)
    assert found.tree == tree
    assert found.repairs == ()


@pytest.mark.parametrize(
    ("symbols", "tree", "repairs"),
    [
        (
            "(S XX XX XX )S",
            "(TOP (S (XX John) (XX runs)))",
            (tree_symbols.TOO_MANY_WORDS,),
        ),
        ("(S XX )S", "(TOP (S (XX John)) (XX runs))", (tree_symbols.TOO_FEW_WORDS,)),
        (
            "(S (NP XX )NP XX",
            "(TOP (S (NP (XX John)) (XX runs)))",
            (tree_symbols.UNCLOSED,),
        ),
        (
            "XX )NP XX )S",
            "(TOP (S (NP (XX John)) (XX runs)))",
            (tree_symbols.UNOPENED,),
        ),
        (
            "(S (NP XX )VP XX )S",
            "(TOP (S (NP (XX John)) (XX runs)))",
            (tree_symbols.OTHER_LABEL,),
        ),
        (
            "(S (NP )NP XX XX )S",
            "(TOP (S (XX John) (XX runs)))",
            (tree_symbols.EMPTY,),
        ),
        (
            "(S <unk> ( XX XX )S",
            "(TOP (S (XX John) (XX runs)))",
            (tree_symbols.NO_SYMBOL,),
        ),
        ("", "(TOP (XX John) (XX runs))", (tree_symbols.TOO_FEW_WORDS,)),
        (")S XX XX", "(TOP (XX John) (XX runs))", (tree_symbols.UNOPENED,)),
    ],
)
def test_what_is_malformed_is_repaired_and_named(symbols, tree, repairs):
    found = repaired(symbols)
    assert str(found.tree) == tree
    assert found.repairs == repairs


def test_whatever_is_written_becomes_a_tree_over_exactly_the_words():
    symbols = ["(S", ")S", "(NP", ")NP", "XX", "<unk>"]
    for written in itertools.product(symbols, repeat=5):
        tree = from_symbols(written, WORDS).tree
        assert list(tree.words) == WORDS
        assert next(read_trees([str(tree)]))[1] == tree
