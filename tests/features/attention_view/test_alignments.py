from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
import pytest

from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.alignments import (
    AlignmentHeads,
    align,
    align_pairs,
    association,
    choose_alignment_heads,
    choose_heads,
)
from t2t_repro.features.attention_view.sentence_attention import (
    Attention,
    TokenSequence,
)
from tests.support.word_attention import attention_of, tokens_of


def pointing(*heads: list[int], keys: int) -> np.ndarray:
    """Return one layer whose heads put all weight of query i on the i-th number."""
    return np.stack([np.eye(keys)[head] for head in heads])[None]


def test_each_target_word_is_linked_to_the_word_with_the_most_weight():
    # Head 1 reverses the order; EOS is query 2 and key 2.
    memory = pointing([1, 0, 2], [0, 1, 2], keys=3)
    attention = attention_of("a b", "x y", memory)
    assert align(attention, AlignmentHeads(1, (1,))) == [(1, 0), (0, 1)]
    assert align(attention, AlignmentHeads(1, (2,))) == [(0, 0), (1, 1)]


def test_several_heads_are_averaged():
    # Head 1 is sure of word 0, and heads 2 and 3 together outvote it.
    votes = pointing([0, 2], [1, 2], [1, 2], keys=3)
    attention = attention_of("a b", "x", votes)
    assert align(attention, AlignmentHeads(1, (1, 2))) == [(0, 0)]
    assert align(attention, AlignmentHeads(1, (1, 2, 3))) == [(1, 0)]


def test_no_word_is_linked_to_eos():
    memory = np.array([[[[0.1, 0.2, 0.7], [0.0, 0.0, 1.0]]]])
    attention = attention_of("a b", "x", memory)
    assert align(attention, AlignmentHeads(1, (1,))) == [(1, 0)]


def test_a_word_can_be_linked_by_the_position_that_reads_it():
    # Query 0 predicts x, query 1 reads x and predicts y, query 2 reads y.
    attention = attention_of("a b", "x y", pointing([1, 0, 1], keys=3))
    assert align(attention, AlignmentHeads(1, (1,))) == [(1, 0), (0, 1)]
    assert align(attention, AlignmentHeads(1, (1,), reading=True)) == [(0, 0), (1, 1)]


def test_subwords_are_merged():
    source = TokenSequence("ab c", ("▁a", "b", "▁c", "</s>"), ((0, 2), (2, 3), (3, 4)))
    memory = np.array([[[[0.3, 0.3, 0.4, 0.0], [0.0, 0.0, 0.0, 1.0]]]], np.float32)
    attention = Attention(
        source=source,
        target=tokens_of("x"),
        encoder_self=np.zeros((1, 1, 4, 4)),
        decoder_self=np.zeros((1, 1, 2, 2)),
        memory=memory,
        score=0.0,
    )
    assert align(attention, AlignmentHeads(1, (1,))) == [(0, 0)]


def test_a_translation_without_words_cannot_be_aligned():
    attention = attention_of("a b", "", pointing([2], keys=3))
    with pytest.raises(UserError, match="without words"):
        align(attention, AlignmentHeads(1, (1,)))


def test_words_that_always_come_together_are_associated():
    together = [[("dog", "hund"), ("a", "ein")], [("dog", "hund"), ("a", "ein")]] * 5
    swapped = [[("dog", "hund"), ("a", "ein")], [("dog", "ein"), ("a", "hund")]] * 5
    assert association(together) > 0.5 > abs(association(swapped))


def test_a_pair_that_occurs_once_is_no_evidence():
    assert association([[("a", "x")], [("b", "y")], [("c", "z")]]) == pytest.approx(0.0)


WORDS = {"dog": "Hund", "cat": "Katze", "sees": "sieht", "a": "ein", "hears": "hört"}


def test_the_heads_that_link_translations_are_chosen_without_references():
    sentences = ["a dog sees a cat", "a cat hears a dog", "a dog hears", "a cat sees"]
    attentions = []
    for sentence in sentences * 2:
        reversed_words = sentence.split()[::-1]
        target = " ".join(WORDS[word] for word in reversed_words)
        last = len(reversed_words)
        straight = [*range(last), last]
        mirrored = [*range(last)[::-1], last]
        memory = np.concatenate(
            [
                pointing(straight, straight, keys=last + 1),
                pointing(straight, mirrored, keys=last + 1),
            ]
        )
        attentions.append(attention_of(sentence, target, memory))
    assert choose_heads(attentions) == AlignmentHeads(2, (2,))


HEADS = AlignmentHeads(1, (1,))


class Reader:
    """A system that attends from each word to the word at the same place.

    It cannot read more than three words, and no word with an "x".
    """

    def attention(self, source, target, decode_hparams=None) -> Attention:
        target = source if target is None else target
        for side, text in (("source", source), ("target", target)):
            words = text.split()
            if not words:
                raise UserError(f"received a {side} without words.")
            if len(words) > 3:
                raise UserError(f"received a {side} of {len(words)} tokens.")
            unknown = [word for word in words if "x" in word]
            if unknown:
                raise UserError(f"received a {side} with {unknown[0]!r}.")
        keys = len(source.split())
        places = [min(place, keys) for place in range(len(target.split()) + 1)]
        return attention_of(source, target, pointing(places, keys=keys + 1))


def dev_data(*texts):
    return SimpleNamespace(splits=["dev"], raw_text={"dev": texts}.__getitem__)


def messages(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_pairs_that_cannot_be_read_are_counted_by_their_reason(caplog):
    sources = ["a b", "a b c d", "a", "", "a b", "a b c d e", "ax", "a", "a b c d e f"]
    targets = ["A B", "A", "", " ", "A x'", "A", "A", "Bx", "A"]
    with caplog.at_level(logging.WARNING):
        links = list(align_pairs(Reader(), sources, targets, HEADS))
    assert links == [[(0, 0), (1, 1)], *[[]] * 8]
    assert list(align_pairs(Reader(), ["a", ""], None, HEADS)) == [[(0, 0)], []]
    assert messages(caplog) == [
        "3 lines (the first: 2) are not aligned: received a source of 4 tokens.",
        '2 lines (the first: 5) are not aligned: received a target with "x\'".',
        "line 3 is not aligned: received a target without words.",
        "line 7 is not aligned: received a source with 'ax'.",
    ]


def test_a_layer_that_does_not_exist_is_an_error_and_no_reason_to_skip():
    with pytest.raises(UserError, match="received layer 2"):
        list(align_pairs(Reader(), ["a"], None, AlignmentHeads(2, (1,))))


def test_dev_pairs_that_cannot_be_read_are_counted_by_their_reason(caplog):
    data = dev_data(["a b", "a b c d", "b a", "b"], ["A B", "A", "B A", "Bx"])
    with caplog.at_level(logging.WARNING):
        choose_alignment_heads(Reader(), data)
    assert len(messages(caplog)) == 3  # the last is of too few pairs
    assert messages(caplog)[:2] == [
        "dev pair 2 is not used to choose heads: received a source of 4 tokens.",
        "dev pair 4 is not used to choose heads: received a target with 'Bx'.",
    ]


def test_only_as_many_dev_pairs_as_are_needed_are_read(caplog):
    data = dev_data(["a b", "b a", "bx"], ["A B", "B A", "B"])
    choose_alignment_heads(Reader(), data, pairs=2)
    assert not [text for text in messages(caplog) if "bx" in text]
    with pytest.raises(UserError, match="received no sentence pairs"):
        choose_alignment_heads(Reader(), dev_data(["a b c d"], ["A"]))
