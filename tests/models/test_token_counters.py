from __future__ import annotations

import json

import pytest

from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.features.parsing.tree_problem import ParsingProblem
from t2t_repro.models.token_counters import TokenCounter, TokenCounters
from t2t_repro.text.subwords import SentencePieceTokenizer, train_sentencepiece
from t2t_repro.text.tokenizer import SymbolTokenizer

SYMBOLS = SymbolTokenizer(["(NP", ")NP", "d/NN", "r/VBZ", "d/DT"])
EVERY_SYMBOL = (2, 3, 4, 5, 6, 7)


class Parsing(ParsingProblem):
    leaves = "initial"


def counters(source, target, problem, *, words, depth):
    return TokenCounters.of(problem(), source, target, words=words, depth=depth)


@pytest.fixture(scope="module")
def subwords():
    lines = ["the dogs run", "a dog runs", "dogs, dogs"] * 10
    return SentencePieceTokenizer(train_sentencepiece(lines, vocab_size=290))


def test_a_subword_with_a_space_before_it_begins_a_word(subwords):
    starts = subwords.word_starts()
    pieces = subwords.pieces(range(subwords.vocab_size))
    assert [*starts] == [k for k, piece in enumerate(pieces) if piece[0] == "\u2581"]
    assert starts


@pytest.mark.parametrize("text", ["the dogs run", "dog", "x dogs zz, a", "\u00e9 run"])
def test_every_word_of_a_text_begins_once(subwords, text):
    starts = set(subwords.word_starts())
    begun = [token for token in subwords.encode(text) if token in starts]
    assert len(begun) == len(text.split())


def test_every_symbol_is_a_word():
    assert SYMBOLS.word_starts() == EVERY_SYMBOL


def test_the_leaves_of_trees_are_their_words():
    found = counters(SYMBOLS, SYMBOLS, Parsing, words=True, depth=False)
    words = TokenCounter(EVERY_SYMBOL), TokenCounter((5, 6, 7))
    assert found == TokenCounters((words[0],), (words[1],))


def test_the_brackets_of_trees_are_the_targets_depth():
    found = counters(SYMBOLS, SYMBOLS, Parsing, words=False, depth=True)
    assert found == TokenCounters((), (TokenCounter((3,), (4,)),))


def test_words_come_before_depth():
    words, depth, both = (
        counters(SYMBOLS, SYMBOLS, Parsing, words=words, depth=depth)
        for words, depth in ((True, False), (False, True), (True, True))
    )
    assert both == TokenCounters(words.source, words.target + depth.target)


def test_depth_needs_brackets():
    with pytest.raises(UserError, match="targets have no brackets"):
        counters(SYMBOLS, SYMBOLS, Problem, words=True, depth=True)


def test_each_side_has_the_words_of_its_tokenizer(subwords):
    found = counters(subwords, SYMBOLS, Problem, words=True, depth=False)
    words = TokenCounter(subwords.word_starts()), TokenCounter(EVERY_SYMBOL)
    assert found == TokenCounters((words[0],), (words[1],))


def test_counters_survive_a_json_file():
    found = counters(SYMBOLS, SYMBOLS, Parsing, words=True, depth=True)
    assert TokenCounters.from_config(json.loads(json.dumps(found))) == found
    assert TokenCounters.from_config([[], []]) == TokenCounters()
