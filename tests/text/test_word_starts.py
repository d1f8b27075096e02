from __future__ import annotations

import pytest

from t2t_repro.text.subwords import SentencePieceTokenizer, train_sentencepiece
from t2t_repro.text.symbols import SymbolTokenizer
from t2t_repro.text.tree_grammar import tree_grammar
from t2t_repro.text.word_starts import WordStarts, leaf_tokens, word_starts

SYMBOLS = SymbolTokenizer(["(NP", ")NP", "d/NN", "r/VBZ", "d/DT"])
EVERY_SYMBOL = (2, 3, 4, 5, 6, 7)


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


def test_a_grammar_has_one_word_per_leaf():
    grammar = tree_grammar(SYMBOLS.pieces(range(SYMBOLS.vocab_size)), "initial")
    assert leaf_tokens(grammar) == (5, 6, 7)
    found = word_starts(SYMBOLS, SYMBOLS, grammar)
    assert found == WordStarts(source=EVERY_SYMBOL, target=(5, 6, 7))


def test_each_side_has_the_words_of_its_tokenizer(subwords):
    found = word_starts(subwords, SYMBOLS)
    assert found == WordStarts(subwords.word_starts(), EVERY_SYMBOL)
