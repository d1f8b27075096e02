from __future__ import annotations

import logging

import numpy as np
import pytest

from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.alignments import (
    AlignmentHeads,
    align_pairs,
    choose_alignment_heads,
)
from t2t_repro.features.attention_view.sentence_attention import (
    Attention,
    TokenSequence,
)

HEADS = AlignmentHeads(1, (1,))


def words_of(text: str) -> TokenSequence:
    words = [*text.split(), "</s>"]
    return TokenSequence.from_labels(words)


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
        queries, keys = words_of(target), words_of(source)
        shape = (1, 1, len(queries.tokens), len(keys.tokens))
        weights = np.zeros(shape, np.float32)
        for query in range(shape[2]):
            weights[..., query, min(query, shape[3] - 1)] = 1.0
        return Attention(
            source=keys,
            target=queries,
            encoder_self=weights,
            decoder_self=weights,
            memory=weights,
            score=0.0,
        )


class DevData:
    def __init__(self, sources, references):
        self.splits = ["dev"]
        self._texts = sources, references

    def raw_text(self, split):
        assert split == "dev"
        return self._texts


def messages(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_pairs_that_cannot_be_read_are_counted_by_their_reason(caplog):
    sources = ["a b", "a b c d", "a", "", "a b", "a b c d e", "ax", "a", "a b c d e f"]
    targets = ["A B", "A", "", "", "A x'", "A", "A", "Bx", "A"]
    with caplog.at_level(logging.WARNING):
        links = list(align_pairs(Reader(), sources, targets, HEADS))
    assert links == [[(0, 0), (1, 1)], *[[]] * 8]
    assert messages(caplog) == [
        "3 lines (the first: 2) are not aligned: received a source of 4 tokens.",
        '2 lines (the first: 5) are not aligned: received a target with "x\'".',
        "line 3 is not aligned: received a target without words.",
        "line 7 is not aligned: received a source with 'ax'.",
    ]


def test_pairs_that_are_aligned_and_blank_lines_are_not_mentioned(caplog):
    with caplog.at_level(logging.WARNING):
        links = list(align_pairs(Reader(), ["a", " "], None, HEADS))
    assert links == [[(0, 0)], []]
    assert messages(caplog) == []


def test_a_layer_that_does_not_exist_is_an_error_and_no_reason_to_skip():
    with pytest.raises(UserError, match="received layer 2"):
        list(align_pairs(Reader(), ["a"], None, AlignmentHeads(2, (1,))))


def test_dev_pairs_that_cannot_be_read_are_counted_by_their_reason(caplog):
    data = DevData(["a b", "a b c d", "b a", "b"], ["A B", "A", "B A", "Bx"])
    with caplog.at_level(logging.WARNING):
        choose_alignment_heads(Reader(), data)
    assert messages(caplog)[:2] == [
        "dev pair 2 is not used to choose heads: received a source of 4 tokens.",
        "dev pair 4 is not used to choose heads: received a target with 'Bx'.",
    ]


def test_pairs_after_the_last_one_needed_are_not_read(caplog):
    data = DevData(["a b", "a b c d", "b a", "bx"], ["A B", "A", "B A", "B"])
    with caplog.at_level(logging.WARNING):
        choose_alignment_heads(Reader(), data, pairs=2)
    assert not [text for text in messages(caplog) if "Bx" in text or "bx" in text]


def test_dev_data_without_a_pair_to_read_names_the_reason(caplog):
    data = DevData(["a b c d"], ["A"])
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(UserError, match="received no sentence pairs"),
    ):
        choose_alignment_heads(Reader(), data)
    assert "received a source of 4 tokens" in messages(caplog)[0]
