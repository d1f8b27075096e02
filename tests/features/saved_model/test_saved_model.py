from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.translate import Translator
from t2t_repro.features.saved_model.saved_model_export import exported_functions
from t2t_repro.features.saved_model.served_translator import ServedTranslator
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SymbolTokenizer
from tests.support.tiny_model import tiny_transformer

DIGITS = SymbolTokenizer([str(digit) for digit in range(8)])
MAX_INPUT_LENGTH = 9  # so 8 tokens per piece
HPARAMS = DecodeHParams(beam_size=3, extra_length=4, batch_size=64)
SENTENCES = [
    "1 2 3",
    "",
    "7",
    "0 1 2 3 4 5 6 7",
    "5 5 unheard 5",
    " \t ",
    "0 1 2 3 4 5 6 7 0",
    "3 1 4 1 5 2 6 5 3 5 0 7 7 3 2 3 4 6 2 6 4",
]


@pytest.fixture(scope="module")
def model():
    # Its translations differ; most random models write nothing, or one text.
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    return tiny_transformer(seed=12, norm="pre", **layers)


@pytest.fixture(scope="module")
def served(model):
    return ServedTranslator(model, DIGITS, DIGITS, HPARAMS, MAX_INPUT_LENGTH, 4096)


@pytest.fixture(scope="module")
def signatures(served):
    """Return what is exported; `test_hard_input.py` compares a loaded export."""
    return exported_functions(served)


@pytest.fixture(scope="module")
def expected(model):
    """Return the hypotheses of the same model in memory."""
    every = HPARAMS.replace(return_beams=True)
    translator = Translator(model, DIGITS, DIGITS, every, MAX_INPUT_LENGTH)
    return translator.translate(SENTENCES)


def as_text(strings):
    return [text.decode() for text in strings.numpy().ravel()]


def test_served_translations_are_those_of_the_model_in_memory(signatures, expected):
    found = signatures["serving_default"](tf.constant(SENTENCES))
    texts = [best[0].text for best in expected]
    assert as_text(found["outputs"]) == texts
    assert len(set(texts)) >= len(SENTENCES) - 2
    scores = [best[0].score for best in expected]
    np.testing.assert_allclose(found["scores"], scores, atol=1e-5)


def test_a_translation_does_not_depend_on_its_batch(signatures):
    serve = signatures["serving_default"]
    together = as_text(serve(tf.constant(SENTENCES))["outputs"])
    alone = [as_text(serve(tf.constant([s]))["outputs"])[0] for s in SENTENCES]
    assert together == alone


def test_n_best_gives_every_hypothesis_best_first(signatures, expected):
    found = signatures["n_best"](tf.constant(SENTENCES))
    assert found["outputs"].shape == (len(SENTENCES), HPARAMS.beam_size)
    for sentence, texts, scores, hypotheses in zip(
        SENTENCES, found["outputs"], found["scores"].numpy(), expected, strict=True
    ):
        if sentence.strip():
            there = len(hypotheses)
            assert as_text(texts)[:there] == [h.text for h in hypotheses]
            assert as_text(texts)[there:] == [""] * (HPARAMS.beam_size - there)
            assert (scores[there:] < -1e8).all()
            assert (np.diff(scores) <= 0).all()


TARGETS = ["3 2 1", "1", "", "7 6 5 4 3 2 1 0", "5 unheard", "2", "4 4", "6"]
SHORT = ["1 2 3", "", "7", "0 1 2 3 4 5 6 7", "5 5 unheard 5", " \t ", "1 2", "4"]


def batch_of(text):
    """Return the ids of a text with EOS as a batch of at least two positions."""
    ids = [*DIGITS.encode(text), 1]
    return tf.constant([ids if len(ids) > 1 else [*ids, 0]])


def test_a_served_score_is_the_log_probability_of_the_target(model, signatures):
    found = signatures["score"](inputs=tf.constant(SHORT), targets=tf.constant(TARGETS))
    for row, (source, target) in enumerate(zip(SHORT, TARGETS, strict=True)):
        ids = [*DIGITS.encode(target), 1]
        pair = {"inputs": batch_of(source), "targets": batch_of(target)}
        logits = model(pair).numpy()[0, : len(ids)]
        logits = logits.astype(np.float64)
        normalizers = np.log(np.exp(logits).sum(-1))
        expected = sum(logits[t, token] - normalizers[t] for t, token in enumerate(ids))
        assert found["scores"][row].numpy() == pytest.approx(expected, abs=1e-4)
        assert found["tokens"][row].numpy() == len(ids)


def test_served_attention_equals_that_of_the_model(model, signatures):
    found = signatures["attention"](
        inputs=tf.constant(SHORT), targets=tf.constant(TARGETS)
    )
    assert set(found) == {
        *("scores", "tokens", "truncated", "input_tokens", "target_tokens"),
        *("encoder_self", "decoder_self", "memory"),
    }
    assert as_text(found["input_tokens"][0])[:5] == ["1", "2", "3", "</s>", "<pad>"]
    assert as_text(found["target_tokens"][4])[:3] == ["5", "<unk>", "</s>"]
    for row, (source, target) in enumerate(zip(SHORT, TARGETS, strict=True)):
        pair = {"inputs": batch_of(source), "targets": batch_of(target)}
        expected = attention_weights(model, pair)
        for name in ("encoder_self", "decoder_self", "memory"):
            weights = getattr(expected, name)[0].numpy()
            queries, keys = weights.shape[2:]
            served = found[name][row, :, :, :queries, :keys].numpy()
            np.testing.assert_allclose(served, weights, atol=1e-5)


LONGEST = " ".join(["1"] * 8)


@pytest.mark.parametrize("name", ["score", "attention"])
def test_a_pair_that_is_too_long_is_marked(signatures, name):
    inputs = ["1", LONGEST + " 2", "1", LONGEST]
    targets = ["1", "1", LONGEST + " 2", LONGEST]
    found = signatures[name](inputs=tf.constant(inputs), targets=tf.constant(targets))
    assert found["truncated"].numpy().tolist() == [False, True, True, False]
    assert found["tokens"].numpy().tolist() == [2, 2, 9, 9]


def test_a_long_source_is_read_up_to_the_last_token_that_leaves_room_for_eos(
    signatures,
):
    inputs = tf.constant([LONGEST, LONGEST + " 2"])
    found = signatures["score"](inputs=inputs, targets=tf.constant(["3 4", "3 4"]))
    whole, cut = found["scores"].numpy()
    assert whole == pytest.approx(cut, abs=1e-5)


def test_the_score_of_a_long_target_is_that_of_its_beginning_without_eos(
    model, signatures
):
    targets = " ".join("12345671") + " 2 3"
    found = signatures["score"](
        inputs=tf.constant(["1 2"]), targets=tf.constant([targets])
    )
    ids = DIGITS.encode(targets)[:9]
    logits = model({"inputs": batch_of("1 2"), "targets": tf.constant([ids])})
    logits = logits.numpy()[0].astype(np.float64)
    normalizers = np.log(np.exp(logits).sum(-1))
    expected = sum(logits[t, token] - normalizers[t] for t, token in enumerate(ids))
    assert found["scores"].numpy().tolist() == pytest.approx([expected], abs=1e-4)


def test_pairs_in_several_groups_have_the_scores_of_pairs_alone(signatures):
    inputs, targets = SHORT * 9, TARGETS * 9  # 8 lengths, and more than 64 tokens
    score = signatures["score"]
    found = score(inputs=tf.constant(inputs), targets=tf.constant(targets))["scores"]
    alone = [
        score(inputs=tf.constant([source]), targets=tf.constant([target]))["scores"][0]
        for source, target in zip(SHORT, TARGETS, strict=True)
    ]
    np.testing.assert_allclose(found, np.tile(alone, 9), atol=1e-5)
