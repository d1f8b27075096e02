from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.data.request import TreeFile
from t2t_repro.errors import UsageError, UserError

TREES = """( (S (NP-SBJ (NNP John)) (VP (VBZ runs)) (. .)) )
( (S (NP-SBJ (-NONE- *))
     (VP (VB Go))) )
"""
JOHN = "(TOP (S (NP (NNP John)) (VP (VBZ runs)) (. .)))"


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "train.mrg"
    path.write_text(TREES)
    return catalogue.problem("parsing_ptb").with_files({"train": TreeFile(path)})


def test_the_pairs_are_sentences_and_their_cleaned_trees(problem):
    assert problem.splits == ("train",)
    assert list(problem.pairs("train", None)) == [
        ("John runs .", JOHN),
        ("Go", "(TOP (S (VP (VB Go))))"),
    ]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("parsing_ptb", "(S (NP XX )NP (VP XX )VP XX )S"),
        ("parsing_ptb_tags", "(S (NP NNP )NP (VP VBZ )VP . )S"),
        ("parsing_ptb_initials", "(S (NP j/NNP )NP (VP r/VBZ )VP ./. )S"),
    ],
)
def test_each_problem_has_its_form_of_leaves(name, written):
    problem = catalogue.problem(name)
    assert problem.encode_target(JOHN) == written
    output = problem.postprocess("John runs .", written)
    assert output.repairs == ()
    assert problem.score([output.text], [JOHN]).complete_match == 100


def test_brackets_of_a_source_are_written_as_in_the_treebank():
    problem = catalogue.problem("parsing_ptb")
    assert problem.normalize_source(" it ( Fig. 1)") == "it -LRB- Fig. 1-RRB-"


def test_trees_are_compared_by_their_brackets():
    problem = catalogue.problem("parsing_ptb")
    other = "(TOP (S (NP (XX John)) (XX runs) (XX .)))"
    assert problem.development_score([other], [JOHN]) == pytest.approx(80)
    first, second = problem.similarities([JOHN, other])
    assert first[0] == second[1] == 100
    assert first[1] == problem.development_score([JOHN], [other])
    assert second[0] == problem.development_score([other], [JOHN])


def test_trees_are_combined_by_the_weights_of_their_constituents():
    problem = catalogue.problem("parsing_ptb")
    other = "(TOP (S (NP (XX John)) (XX runs) (XX .)))"
    with_verb = other.replace("(XX runs)", "(VP (XX runs))")
    assert problem.has_consensus
    assert problem.consensus([other, JOHN], [1.0, 1.5]) == with_verb
    assert problem.consensus([other, JOHN], [1.5, 1.0]) == other


def test_the_development_score_counts_sentences_of_more_than_40_words():
    # One true bracket of two: the long sentence has another label.
    leaves = " ".join(f"(NN w{number})" for number in range(41))
    found = [f"(TOP (NP {leaves}))", "(TOP (NP (NN a)))"]
    true = [f"(TOP (S {leaves}))", "(TOP (NP (NN a)))"]
    problem = catalogue.problem("parsing_ptb")
    assert problem.development_score(found, true) == pytest.approx(50)


def test_a_sentence_without_words_has_a_tree_without_leaves():
    problem = catalogue.problem("parsing_ptb")
    output = problem.postprocess("", "")
    assert (output.text, output.repairs) == ("(TOP)", ())
    assert problem.encode_target("(TOP)") == ""
    assert problem.score([output.text, JOHN], ["(TOP)", JOHN]).f1 == 100


def test_scoring_refuses_a_line_that_is_not_a_tree():
    problem = catalogue.problem("parsing_ptb")
    for line in ("", "(S (NN x)", f"{JOHN} {JOHN}"):
        with pytest.raises(UserError, match=r"expected .*bracketed tree"):
            problem.score([line], [JOHN])


def test_a_file_with_a_malformed_tree_is_refused_with_its_line(tmp_path):
    path = tmp_path / "train.mrg"
    path.write_text(TREES + "(S oops\n")
    problem = catalogue.problem("parsing_ptb").with_files({"train": TreeFile(path)})
    with pytest.raises(UserError, match="begins on line 4 never ends"):
        problem.check(None)


def test_a_parsing_problem_has_no_reverse():
    with pytest.raises(UserError, match="has no reverse"):
        catalogue.problem("parsing_ptb_rev")


def test_the_synthetic_trees_have_the_words_of_the_synthetic_sentences():
    parsing = catalogue.problem("parsing_synthetic").pairs("train", None)
    translation = catalogue.problem("translate_ende_synthetic").pairs("train", None)
    for _ in range(200):
        source, tree = next(parsing)
        english, _ = next(translation)
        # A tree separates its words, and "cannot" is two words.
        assert source.replace("can not", "cannot").replace(" ", "") == english.replace(
            " ", ""
        )
        assert tree.startswith("(TOP (S")


def test_without_files_the_error_names_the_file():
    with pytest.raises(UsageError, match="expected train_trees"):
        list(catalogue.problem("parsing_ptb").pairs("train", None))
