"""Every row gets its answer, whatever it or its neighbours contain."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.errors import UsageError
from t2t_repro.features.saved_model.served_translator import ServedTranslator
from t2t_repro.settings.decode_hparams import DecodeHParams
from tests.fuzz.fuzz_serving import fuzz
from tests.support.hard_text import KINDS, hard_text

SIGNATURES = ["serving_default", "n_best", "score", "attention"]
LONG = "horse " * 2000


def serve(system, name, texts):
    inputs = {"inputs": tf.constant(texts, tf.string)}
    if name in ("score", "attention"):
        inputs["targets"] = inputs["inputs"]
    return system.signatures[name](**inputs)


def test_signatures_have_the_promised_types(subword_system):
    assert set(subword_system.signatures) == {*SIGNATURES}
    signature = subword_system.signatures["serving_default"]
    outputs = signature.structured_outputs
    assert outputs["outputs"].dtype == tf.string
    assert outputs["outputs"].shape.rank == 1
    assert outputs["scores"].dtype == tf.float32
    (inputs,) = signature.structured_input_signature[1].values()
    assert (inputs.name, inputs.dtype) == ("inputs", tf.string)


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_batch_without_rows_is_answered(subword_system, name):
    found = serve(subword_system, name, [])
    assert {len(value) for value in found.values()} == {0}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_batch_of_empty_texts_is_answered(subword_system, name):
    found = serve(subword_system, name, ["", "\u00a0\u200b"])
    scores = found["scores"].numpy().tolist()
    assert np.isfinite(scores).all()
    assert scores[0] == scores[1]
    assert found["truncated"].numpy().tolist() == [False, False]
    if "outputs" in found:
        assert set(found["outputs"].numpy().ravel().tolist()) == {b""}
        assert not np.any(scores)


@pytest.mark.parametrize("name", SIGNATURES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hard_text_is_answered(subword_system, name, kind):
    source = random.Random(5)
    texts = [hard_text(kind, source) for _ in range(4)]
    found = serve(subword_system, name, ["we sleep .", *texts])
    assert {len(value) for value in found.values()} == {5}
    if "outputs" in found:
        for text in found["outputs"].numpy().ravel():
            text.decode("utf-8")


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_text_that_is_too_long_is_marked_and_does_not_change_others(
    subword_system, name
):
    mixed = serve(subword_system, name, ["we sleep .", LONG, "wir", "🙂" * 10_000])
    alone = serve(subword_system, name, ["we sleep .", "wir"])
    assert mixed["truncated"].numpy().tolist() == [False, True, False, True]
    scores = mixed["scores"].numpy()[::2]
    np.testing.assert_allclose(scores, alone["scores"], atol=1e-4)
    if "outputs" in mixed:
        outputs = mixed["outputs"].numpy()[::2].tolist()
        assert outputs == alone["outputs"].numpy().tolist()


def test_a_source_is_cut_after_the_piece_with_the_last_token(subword_system):
    assert len(subword_system.tokenizer.encode("a a a")) == 3
    for count, is_cut in ((105, False), (106, True)):
        found = serve(subword_system, "serving_default", ["a " * count])
        assert found["truncated"].numpy().tolist() == [is_cut]


def test_the_translation_of_a_cut_source_is_the_beginning_of_the_whole(subword_system):
    found = serve(subword_system, "serving_default", [LONG])
    served = found["outputs"].numpy()[0].decode()
    whole = subword_system.translator.translate([LONG])[0][0].text
    assert served
    assert whole.startswith(f"{served} ")


def test_bytes_that_are_not_utf8_are_read_as_replacement_characters(subword_system):
    wrong = b"we \xf0\x9f sleep \xed\xa0\x80 ."
    found = serve(subword_system, "n_best", [wrong, wrong.decode("utf-8", "replace")])
    first, second = found["outputs"].numpy().tolist()
    assert first == second


def test_random_texts_are_translated_as_in_memory(subword_system):
    report = fuzz(subword_system.signatures, subword_system.translator, 120, seed=7)
    assert report.failures == []
    assert report.inputs >= 120
    assert len(report.ties) <= 2


def test_a_limit_without_tokens_is_refused():
    with pytest.raises(UsageError, match="max_source_tokens=0, expected at least 1"):
        ServedTranslator(None, None, None, DecodeHParams(), 16, max_source_tokens=0)
