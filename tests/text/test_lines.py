from __future__ import annotations

import unicodedata

import pytest
import tensorflow as tf

from t2t_repro.text import SentencePieceTokenizer, SymbolTokenizer, train_sentencepiece
from t2t_repro.text.lines import BLANK_TEXT, is_blank
from tests.support.hard_text import shows_nothing

SURROGATES = range(0xD800, 0xE000)  # UTF-8 cannot encode them
EVERY_CHARACTER = [chr(c) for c in range(0x110000) if c not in SURROGATES]

BLANK_LINES = [
    "",
    " ",
    "\t\x0b\x0c\r",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\ufeff",
    "\u2060",
    "\u00ad",
    "\u200e\u202e",
    "\u3164\uffa0",
    "\ufe0f\U000e0041",
    "\0\x7f\x85",
    " \u00a0\u200b\u3000 ",
]
VISIBLE_LINES = ["a", "\u200ba\u200b", "\u0301", "\u06dd", "\ufffd", "\u2581", "\ud800"]


def test_the_blank_lines_are_those_of_characters_that_unicode_does_not_show():
    lines = [*EVERY_CHARACTER, *BLANK_LINES, *VISIBLE_LINES]
    assert [x for x in lines if is_blank(x) != shows_nothing(x)] == []
    assert all(map(is_blank, BLANK_LINES))
    assert not any(map(is_blank, VISIBLE_LINES))


def test_no_letter_with_a_name_is_blank_but_the_hangul_fillers():
    letters = [c for c in EVERY_CHARACTER if unicodedata.category(c) in ("Lu", "Lo")]
    names = [unicodedata.name(c) for c in letters if is_blank(c)]
    assert names
    assert all("HANGUL" in name and "FILLER" in name for name in names)


def test_python_and_tensorflow_agree_about_every_character():
    found = tf.strings.regex_full_match(EVERY_CHARACTER, BLANK_TEXT).numpy()
    assert found.tolist() == [*map(is_blank, EVERY_CHARACTER)]
    lines = [*BLANK_LINES, *VISIBLE_LINES[:-1]]
    found = tf.strings.regex_full_match(lines, BLANK_TEXT).numpy()
    assert found.tolist() == [*map(is_blank, lines)]


@pytest.mark.parametrize("kind", ["subwords", "symbols"])
def test_a_blank_text_has_no_ids_in_python_and_in_the_graph(kind):
    tokenizer = SymbolTokenizer(["a", "b"])
    if kind == "subwords":
        lines = ["a b ab ba"] * 5
        tokenizer = SentencePieceTokenizer(train_sentencepiece(lines, vocab_size=264))
    texts = [*BLANK_LINES, *VISIBLE_LINES[:-1]]
    found = tokenizer.in_graph().encode(texts).to_list()
    assert found == tokenizer.encode_batch(texts) == [*map(tokenizer.encode, texts)]
    assert found[: len(BLANK_LINES)] == [[]] * len(BLANK_LINES)
    assert found[len(BLANK_LINES)] == tokenizer.encode("a") != []
    assert tokenizer.encode_sampled(BLANK_LINES, 0.1, "1") == [[]] * len(BLANK_LINES)
