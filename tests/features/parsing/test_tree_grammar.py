"""The grammar of tree symbols."""

from __future__ import annotations

import pytest

from t2t_repro.features.parsing.bracket_grammar import BracketGrammar, tree_grammar

ENTRIES = ["<pad>", "</s>", "<unk>", "(S", "XX", ")S", "(NP", ")VP", "(", ")", "-LRB-"]
INITIALS = ["<pad>", "</s>", "<unk>", ")S", "(S", "t/DT", "*/NN", "-/-", "0/CD", "t/NN"]


@pytest.mark.parametrize("form", ["any", "tag"])
def test_leaves_without_initials_fit_every_word(form):
    grammar = tree_grammar(ENTRIES, form)
    # Brackets without a partner or a label belong to no tree.
    assert grammar.brackets == ((3, 5),)
    assert grammar.leaves == ((4, 10),)
    assert grammar.word_kinds("any (three words") == [0, 0, 0]


@pytest.mark.parametrize(
    ("word", "leaves"),
    [
        ("the", {5, 9}),
        ("The", {5, 9}),
        ("\u00e9t\u00e9", {6}),
        ("\U0001f600", {6}),
        ("1984", {8}),
        ("-LRB-", {7}),
        ("(a)", {7}),
        # No leaf has its initial.
        ("cat", {5, 6, 7, 8, 9}),
        ("%", {5, 6, 7, 8, 9}),
    ],
)
def test_a_leaf_fits_the_words_with_its_initial(word, leaves):
    grammar = tree_grammar(INITIALS, "initial")
    (kind,) = grammar.word_kinds(word)
    assert set(grammar.leaves[kind]) == leaves


def test_a_grammar_needs_leaves():
    with pytest.raises(ValueError, match="needs a leaf"):
        tree_grammar(ENTRIES[:4], "any")


@pytest.mark.parametrize("kinds", [(0,) * 255, (1,) * 256])
def test_every_byte_needs_a_kind_with_leaves(kinds):
    with pytest.raises(ValueError, match="256 numbers below 1"):
        BracketGrammar(((3, 4),), ((5,),), kinds)
