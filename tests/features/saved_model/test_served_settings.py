"""A served system has the parts and the settings of the system in memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import tensorflow as tf

from t2t_repro.decoding.beam import BeamSearchResult
from t2t_repro.decoding.sentences import longest_piece
from t2t_repro.errors import UserError
from t2t_repro.features.saved_model import served_translator
from t2t_repro.features.saved_model.saved_model_export import export_saved_model
from t2t_repro.features.saved_model.served_translator import ServedTranslator
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.support.recorder import record

HPARAMS = DecodeHParams(
    beam_size=3, alpha=0.9, extra_length=5, batch_size=333, prefer_unrepaired=True
)
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
    model = SimpleNamespace(variables=[SimpleNamespace(value="weights")])
    served = ServedTranslator.__new__(ServedTranslator)
    # Targets are two letters after the sources.
    tokenizers = Letters(5), Letters(3)
    served.__init__(model, *tokenizers, HPARAMS, LONGEST, 4096)
    served.made_of = model, *tokenizers
    return served


def texts(values):
    return [text.decode() for text in values["outputs"].numpy().ravel()]


def test_each_side_has_its_tokenizer_and_a_piece_its_length(served):
    _, source, target = served.made_of
    assert (served.source_tokenizer, served.target_tokenizer) == (source, target)
    assert served._longest_piece == longest_piece(LONGEST) == 11
    assert [*served.weights] == ["weights"]
    assert served._group_size == HPARAMS.batch_size == 333


def test_translating_searches_for_one_hypothesis_that_nothing_repairs(served, searched):
    assert texts(served.translate(tf.constant(["abc", "d"]))) == ["cde", "f"]
    call = searched.call
    assert call["model"] is served.made_of[0]
    assert call["hparams"] == HPARAMS.replace(prefer_unrepaired=False)
    assert call["hparams"].num_hypotheses == 1


def test_n_best_searches_for_all_hypotheses(served, searched):
    found = served.n_best(tf.constant(["abc"]))
    assert texts(found) == ["cde"] * 3
    assert found["scores"].numpy().tolist() == [[-1.0, -2.0, -3.0]]
    call = searched.call
    assert call["model"] is served.made_of[0]
    assert call["hparams"] == HPARAMS.replace(
        prefer_unrepaired=False, return_beams=True
    )


def test_pieces_are_cut_at_the_longest_and_joined_with_their_scores(served):
    line = "abcdefghijklm"
    found = served.translate(tf.constant(["", line, "a"]))
    assert texts(found) == ["", "cdefghijklm no", "c"]
    assert found["scores"].numpy().tolist() == [0.0, -2.0, -1.0]


def test_both_signatures_are_exported_under_their_names(served, monkeypatch, tmp_path):
    def save(obj, export_dir, signatures):
        assert obj is served
        assert signatures["serving_default"] is served.translate
        assert signatures["n_best"] is served.n_best
        (tmp_path / "written").write_text(export_dir)

    monkeypatch.setattr(tf.saved_model, "save", save)
    export_saved_model(served, tmp_path / "export")
    assert (tmp_path / "written").exists()
    assert (tmp_path / "export").is_dir()
    with pytest.raises(UserError, match="which exists"):
        export_saved_model(served, tmp_path / "export")


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        tf.errors.ResourceExhaustedError(None, None, "No space left on device\nmore"),
    ],
)
def test_a_failed_export_names_its_folder_and_leaves_none(
    served, monkeypatch, tmp_path, error
):
    def save(*_, **__):
        raise error

    monkeypatch.setattr(tf.saved_model, "save", save)
    with pytest.raises(UserError, match=r"export: No space left on device$"):
        export_saved_model(served, str(tmp_path / "export"))
    assert list(tmp_path.iterdir()) == []
