from __future__ import annotations

import re

import pytest

from t2t_repro.features.parsing.trees import (
    Constituent,
    Leaf,
    Tree,
    read_trees,
    treebank_words,
    walk,
)

JOHN = "(TOP (S (NP (NNP John)) (VP (VBZ runs))))"
JOHN_TREE = Tree(
    (Leaf("NNP", "John"), Leaf("VBZ", "runs")),
    (Constituent("S", 0, 2), Constituent("NP", 0, 1), Constituent("VP", 1, 2)),
)


def read(*lines):
    return [tree for _, tree in read_trees(lines)]


def test_a_tree_is_leaves_and_spans_in_preorder():
    assert read(JOHN) == [JOHN_TREE]


@pytest.mark.parametrize("root", ["", "TOP", "ROOT", "S1"])
def test_the_root_is_left_out_whatever_its_label(root):
    assert read(JOHN.replace("TOP", root)) == [JOHN_TREE]
    assert read(f"({root} {JOHN})") == [JOHN_TREE]
    assert read("(S (NP (NNP John)) (VP (VBZ runs)))") == [JOHN_TREE]


def test_a_tree_is_written_as_it_was_read():
    assert str(JOHN_TREE) == JOHN
    assert str(read("((NN Abstract))")[0]) == "(TOP (NN Abstract))"


def test_a_tree_can_span_lines_and_a_line_can_hold_several_trees():
    lines = ["( (S (NP (NNP John))", "\t(VP (VBZ runs))))", "", f"{JOHN} {JOHN}"]
    assert read(*lines) == [JOHN_TREE] * 3
    assert [number for number, _ in read_trees(lines)] == [1, 4, 4]


@pytest.mark.parametrize(
    ("line", "tree"),
    [
        # Labels lose function tags and indices, but tags of brackets stay.
        (
            "(S (NP-SBJ-1 (-LRB- -LRB-)) (PP=2 (IN-4 in)) (-LRB- (,-1 ,)))",
            "(S (NP (-LRB- -LRB-)) (PP (IN in)) (-LRB- (, ,)))",
        ),
        # Brackets without a label, traces and what holds nothing else are left out.
        ("( (S (`` “) ( (NP (NN x)))))", "(S (`` “) (NP (NN x)))"),
        (
            "(S (NP-SBJ (-NONE- *)) (VP (VB Go) (NP (-NONE- *T*-1))))",
            "(S (VP (VB Go)))",
        ),
        ("(TOP (S (VP (VB Go))))", "(S (VP (VB Go)))"),
    ],
)
def test_labels_are_cleaned_and_constituents_keep_their_order(line, tree):
    assert str(read(line)[0]) == f"(TOP {tree})"


@pytest.mark.parametrize("line", ["()", "( )", "(TOP)", "(TOP (S (-NONE- *)))"])
def test_a_tree_can_have_no_leaf(line):
    assert read(line) == [Tree((), ())]
    assert read(str(Tree((), ()))) == [Tree((), ())]


def test_a_no_break_space_is_part_of_a_word():
    assert read("(NN a\u00a0b)")[0].words == ("a\u00a0b",)
    assert treebank_words(" a\u00a0b\tc ") == ["a\u00a0b", "c"]
    assert treebank_words("f (x)") == ["f", "-LRB-x-RRB-"]


def test_trees_can_be_nested_5000_deep():
    line = "(A " * 5000 + "(NN x)" + ")" * 5000
    tree = read(line)[0]
    assert len(tree.constituents) == 5000
    assert sum(1 for _ in walk(tree)) == 10_001


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["(S (NN x))", "(S (NN x)"], "begins on line 2 never ends"),
        (["(S (NN x)))"], "line 1: found an extra closing bracket"),
        (["", "word"], "line 2: found the word 'word' without its tag"),
        (["(S (NN x) y)"], "found the word 'y' without its tag"),
        (["(S (NN x y))"], "line 1: found (NN x y), expected (TAG word)"),
        (["(TOP x y)"], "found (TOP x y), expected (TAG word)"),
        (["(NN)"], "found (NN), expected (TAG word)"),
        (["(S (TOP))"], "found (TOP), expected (TAG word)"),
        (["(S (NN))"], "found (NN), expected (TAG word)"),
        (["(S NP (NN x))"], "found (S NP (, expected one label"),
    ],
)
def test_malformed_brackets_are_refused_with_their_line(lines, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read(*lines)
