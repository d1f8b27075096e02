from __future__ import annotations

import pytest

from t2t_repro.features.attention_view.sentence_attention import (
    TokenSequence,
    join_bytes,
    word_text,
)
from t2t_repro.text.subwords import SentencePieceTokenizer, train_sentencepiece


def byte_pieces(content: bytes) -> list[str]:
    return [f"<0x{byte:02X}>" for byte in content]


@pytest.mark.parametrize("text", ["é", "日", "日本語", "🙂", "a日b", "9"])
def test_bytes_that_form_characters_become_these_characters(text):
    assert join_bytes(byte_pieces(text.encode())) == text


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"\xe6", "<0xE6>"),
        (b"\xe6\x97", "<0xE6><0x97>"),
        (b"\xe6\x97A", "<0xE6><0x97>A"),
        ("日".encode() + b"\xff" + "語".encode(), "日<0xFF>語"),
        (b"\xc0\x80", "<0xC0><0x80>"),  # too long for its character
        (b"\xed\xa0\x80", "<0xED><0xA0><0x80>"),  # half of a surrogate pair
        (b"\x00\n", "<0x00><0x0A>"),
        ("\u0085".encode(), "<0xC2><0x85>"),
    ],
)
def test_bytes_that_form_no_visible_character_stay(content, shown):
    assert join_bytes(byte_pieces(content)) == shown


def test_other_pieces_between_bytes_separate_them():
    assert join_bytes(["<0xE6>", "<0x97>", "x", "<0xA5>"]) == "<0xE6><0x97>x<0xA5>"


def test_pieces_that_spell_a_byte_together_are_text():
    assert join_bytes(["<0x", "39", ">"]) == "<0x39>"
    assert join_bytes(["<0x3g>", "<0xe6>"]) == "<0x3g><0xe6>"


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["▁Pfe", "rd"], "Pferd"),
        (["▁", *byte_pieces("日".encode())], "日"),
        (["▁"], "▁"),
        (["</s>"], "</s>"),
        ([], ""),
    ],
)
def test_the_text_of_a_word_has_no_space_before_it(pieces, text):
    assert word_text(pieces) == text


def test_words_of_a_real_vocabulary_are_read_as_they_were_written():
    lines = ["the ship is green", "two books are red"] * 20
    tokenizer = SentencePieceTokenizer(train_sentencepiece(lines, vocab_size=300))
    text = "the 日本 ship é🙂"
    ids = tokenizer.encode(text)
    assert "<0xE6>" in tokenizer.pieces(ids)
    words = TokenSequence.from_ids(tokenizer, ids, text).word_labels()
    assert words == text.split()
