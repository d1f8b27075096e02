from __future__ import annotations

import base64
import dataclasses
import json

import numpy as np
import pytest

from t2t_repro.features.attention_view.sentence_attention import (
    Attention,
    TokenSequence,
    first_words,
    join_bytes,
    merge_words,
    word_text,
)
from t2t_repro.text.subwords import SentencePieceTokenizer, train_sentencepiece


def random_rows(*shape: int) -> np.ndarray:
    weights = np.random.default_rng(sum(shape)).random(shape, np.float32)
    return weights / weights.sum(-1, keepdims=True)


SOURCE = TokenSequence(
    "a horse", ("▁a", "▁hor", "se", "</s>"), ((0, 1), (1, 3), (3, 4))
)
TARGET = TokenSequence("ein Pferd", ("▁ein", "▁Pfe", "rd"), ((0, 1), (1, 3)))


@pytest.fixture
def attention() -> Attention:
    return Attention(
        source=SOURCE,
        target=TARGET,
        encoder_self=random_rows(2, 3, 4, 4),
        decoder_self=random_rows(2, 3, 3, 3),
        memory=random_rows(2, 3, 3, 4),
        decoder_parameters=random_rows(2, 5, 3, 100),
        score=-1.25,
        title="dev sentence 1",
    )


def test_attention_is_shown_with_its_texts_and_shapes(attention):
    assert repr(attention) == (
        "<Attention 'a horse' -> 'ein Pferd': encoder_self (2, 3, 4, 4), decoder_self "
        "(2, 3, 3, 3), memory (2, 3, 3, 4), decoder_parameters (2, 5, 3, 100)>"
    )


def test_a_decoder_reads_the_targets_one_position_later():
    read = TARGET.shifted()
    assert read.tokens == ("<start>", "▁ein", "▁Pfe")
    assert read.words == ((0, 1), (1, 2), (2, 3))
    complete = TokenSequence("", ("▁a", "b", "</s>"), ((0, 2), (2, 3)))
    assert complete.shifted().tokens == ("<start>", "▁a", "b")
    assert complete.shifted().words == ((0, 1), (1, 3))


def test_words_are_the_mean_over_queries_and_the_sum_over_keys():
    weights = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0], [0.3, 0.1, 0.6]])
    merged = merge_words(weights, [(0, 1), (1, 3)], [(0, 2), (2, 3)])
    np.testing.assert_allclose(merged, [[0.3, 0.7], [0.7, 0.3]])


def test_a_document_holds_every_weight_as_float16(attention):
    document = json.loads(json.dumps(attention.to_document()))
    kinds = [found["kind"] for found in document["maps"]]
    assert kinds == ["encoder_self", "decoder_self", "memory", "decoder_parameters"]
    memory = document["maps"][2]
    assert (memory["queries"], memory["keys"]) == ("target", "source")
    decoded = np.frombuffer(base64.b64decode(memory["weights"]), "<f2")
    shape = (memory["layers"], memory["heads"], 3, 4)
    np.testing.assert_allclose(decoded.reshape(shape), attention.memory, atol=5e-4)
    assert document["sequences"]["target"]["tokens"] == ["▁ein", "▁Pfe", "rd"]
    assert document["sequences"]["source"]["words"] == [[0, 1], [1, 3], [3, 4]]
    assert document["score"] == -1.25
    assert document["first_words"] == "a horse"


def test_parameters_show_the_rows_most_attended_and_the_sum_of_the_others(attention):
    found = {found.kind: found for found in attention.maps()}["decoder_parameters"]
    labels = attention.sequences()["decoder_rows"].tokens
    assert len(labels) == found.weights.shape[-1] == 33
    assert labels[-1] == "68 other rows"
    totals = attention.decoder_parameters.sum((0, 1, 2))
    kept = {int(label.removeprefix("row ")) for label in labels[:-1]}
    assert kept == set(np.argsort(-totals)[:32].tolist())
    np.testing.assert_allclose(found.weights.sum(-1), 1.0, rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The lamp\n is  old.", "The lamp is old."),
        ("a" * 40, "a" * 40),
        ("a" * 41, "a" * 40 + "…"),
        (
            "The teacher found the old book in the kitchen.",
            "The teacher found the old book in the…",
        ),
        (
            "The teachers found the oldest books here now.",
            "The teachers found the oldest books here…",
        ),
        ("", ""),
    ],
)
def test_the_first_words_of_a_sentence_are_at_most_forty_characters(text, shown):
    assert first_words(text) == shown


BYTES = TokenSequence(
    "ein 日 9\ufffd",
    ("▁ein", "▁", "<0xE6>", "<0x97>", "<0xA5>", "▁", "<0x39>", "<0xE6>", "</s>"),
    ((0, 1), (1, 5), (5, 8), (8, 9)),
)


def test_words_spelt_in_bytes_are_merged_like_all_words(attention):
    size = len(BYTES.tokens)
    weights = random_rows(1, 1, size, size)
    found = dataclasses.replace(attention, source=BYTES, encoder_self=weights)
    merged = found.in_words("encoder_self")[0, 0]
    expected = weights[0, 0, 1:5].mean(0)[5:8].sum()
    assert merged[1, 2] == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(merged.sum(-1), 1.0, rtol=1e-6)


def test_a_document_has_readable_tokens_and_words(attention):
    document = dataclasses.replace(attention, source=BYTES).to_document()
    labels = ["ein", "日", "9<0xE6>", "<EOS>"]
    assert document["sequences"]["source"]["labels"] == labels
    assert document["sequences"]["source"]["tokens"] == [
        *("▁ein", "▁", "<0xE6>", "<0x97>", "<0xA5>", "▁", "9", "<0xE6>", "<EOS>")
    ]


def test_a_document_names_the_languages_that_are_known(attention):
    german = dataclasses.replace(attention.target, language="de")
    sequences = dataclasses.replace(attention, target=german).to_document()["sequences"]
    languages = [sequences[name]["lang"] for name in ("source", "target", "read")]
    assert languages == [None, "de", "de"]


def byte_pieces(content: bytes) -> list[str]:
    return [f"<0x{byte:02X}>" for byte in content]


@pytest.mark.parametrize("text", ["é", "日本語", "🙂", "a日b"])
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
