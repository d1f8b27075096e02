"""A served system has the tokenizers and settings of the system in memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import tensorflow as tf

from t2t_repro.decoding.beam import BeamSearchResult
from t2t_repro.features.saved_model import served_translator
from t2t_repro.features.saved_model.served_translator import ServedTranslator
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.support.recorder import record

HPARAMS = DecodeHParams(beam_size=3, alpha=0.9, extra_length=5, prefer_unrepaired=True)
LONGEST = 12


class Letters:
    """A tokenizer of letters, whose first one has a given id."""

    def __init__(self, first):
        self.first = first

    def in_graph(self):
        return self

    def encode(self, texts):
        codes = tf.strings.unicode_decode(texts, "UTF-8")
        return codes - ord("a") + self.first

    def decode(self, ids):
        codes = tf.ragged.boolean_mask(ids, ids > 1) - self.first + ord("a")
        return tf.strings.unicode_encode(codes, "UTF-8")


@pytest.fixture
def searched(monkeypatch):
    """Put a copy of the source in place of the search."""

    def search(model, inputs, hparams, per_row, grammar):
        ids = tf.stack([inputs] * hparams.num_hypotheses, axis=1)
        scores = -tf.range(hparams.num_hypotheses, dtype=tf.float32) - 1.0
        shape = [tf.shape(inputs)[0], hparams.num_hypotheses]
        return BeamSearchResult(ids, tf.broadcast_to(scores, shape))

    return record(monkeypatch, served_translator, "search_translations", search)


@pytest.fixture
def served(searched):
    model = SimpleNamespace(variables=[])
    # Targets are two letters after the sources.
    return ServedTranslator(model, Letters(5), Letters(3), HPARAMS, LONGEST, 4096)


def test_translating_joins_pieces_and_searches_for_one_that_nothing_repairs(
    served, searched
):
    found = served.translate(tf.constant(["", "abcdefghijklm", "a"]))
    assert found["outputs"].numpy().tolist() == [b"", b"cdefghijklm no", b"c"]
    assert found["scores"].numpy().tolist() == [0.0, -2.0, -1.0]
    assert searched.call["hparams"] == HPARAMS.replace(prefer_unrepaired=False)


def test_n_best_searches_for_all_hypotheses(served, searched):
    found = served.n_best(tf.constant(["abc"]))
    assert found["outputs"].numpy().tolist() == [[b"cde"] * 3]
    assert found["scores"].numpy().tolist() == [[-1.0, -2.0, -3.0]]
    every = HPARAMS.replace(prefer_unrepaired=False, return_beams=True)
    assert searched.call["hparams"] == every
