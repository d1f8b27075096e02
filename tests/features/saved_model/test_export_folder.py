"""The folder of an export; test_saved_model.py runs its warm-up requests."""

from __future__ import annotations

import logging
import sys

import pytest
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.features.saved_model import saved_model_export
from t2t_repro.features.saved_model.saved_model_export import (
    export_saved_model,
    write_warm_up_requests,
)
from tests.support.recorder import record


def test_without_the_messages_no_file_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_serving", None)
    monkeypatch.setitem(sys.modules, "tensorflow_serving.apis", None)
    assert not write_warm_up_requests(tmp_path, {"serving_default": ["inputs"]})
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def served():
    """Return functions of text in place of a system."""
    spec = tf.TensorSpec([None], tf.string, name="texts")
    function = tf.function(lambda texts: texts, input_signature=[spec])
    names = ("translate", "n_best", "score", "attention")
    return type("Served", (), dict.fromkeys(names, function))


@pytest.mark.parametrize("is_written", [True, False])
def test_an_export_says_if_it_has_no_requests(
    served, monkeypatch, tmp_path, caplog, is_written
):
    caplog.set_level(logging.INFO, "t2t_repro")
    record(monkeypatch, tf.saved_model, "save")
    written = record(
        monkeypatch, saved_model_export, "write_warm_up_requests", is_written
    )
    export_saved_model(served, tmp_path / "export")
    assert ("no warm-up requests" in caplog.text) == (not is_written)
    assert written.call["folder"] == tmp_path / "export.incomplete"
    assert written.call["signatures"]["serving_default"] == ["texts"]
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
