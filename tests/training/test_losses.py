from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.training.losses import SmoothedCrossentropy, TokenAccuracy, token_losses
from tests.support.numpy_transformer import smoothed_cross_entropy, softmax

VOCAB_SIZE = 7
TARGETS = np.array([[3, 6, 1, 0], [2, 1, 0, 0]], "int32")
REAL = TARGETS != 0
LOGITS = 3.0 * np.random.default_rng(0).normal(size=(2, 4, VOCAB_SIZE))
LOGITS = LOGITS.astype("float32")


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_it_equals_cross_entropy_with_a_full_distribution(smoothing):
    smoothed, _ = token_losses(TARGETS, LOGITS, smoothing)
    expected = smoothed_cross_entropy(LOGITS[REAL], TARGETS[REAL], smoothing)
    np.testing.assert_allclose(smoothed.numpy()[REAL], expected, rtol=1e-5)


def test_the_second_value_is_the_negative_log_likelihood():
    _, nll = token_losses(TARGETS, LOGITS, 0.1)
    expected = -np.log(
        np.take_along_axis(softmax(LOGITS), TARGETS[..., None], axis=-1)[..., 0]
    )
    np.testing.assert_allclose(nll.numpy()[REAL], expected[REAL], rtol=1e-5)


def test_padding_costs_nothing():
    for losses in token_losses(TARGETS, LOGITS, 0.1):
        assert np.all((losses.numpy() == 0.0) == ~REAL)


def test_the_gradient_is_the_models_distribution_minus_the_wanted_one():
    logits = tf.constant(LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        smoothed, _ = token_losses(TARGETS, logits, 0.1)
        total = tf.reduce_sum(smoothed)
    wanted = np.full(LOGITS.shape, 0.1 / (VOCAB_SIZE - 1))
    np.put_along_axis(wanted, TARGETS[..., None], 0.9, axis=-1)
    expected = (softmax(LOGITS) - wanted) * REAL[..., None]
    np.testing.assert_allclose(tape.gradient(total, logits), expected, atol=1e-6)


def test_the_gradient_scatters_nothing_into_an_array_of_the_size_of_the_logits():
    @tf.function(input_signature=[tf.TensorSpec(LOGITS.shape)])
    def gradient(logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            total = tf.reduce_sum(token_losses(TARGETS, logits, 0.1)[0])
        return tape.gradient(total, logits)

    kinds = {
        operation.type
        for operation in gradient.get_concrete_function().graph.get_operations()
    }
    assert not {kind for kind in kinds if "Scatter" in kind or "SegmentSum" in kind}


def test_huge_logits_give_finite_losses():
    for losses in token_losses(TARGETS, 1e4 * LOGITS, 0.1):
        assert np.all(np.isfinite(losses))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_for_compile_is_the_trainers_mean_over_real_tokens(smoothing):
    smoothed, _ = token_losses(TARGETS, LOGITS, smoothing)
    expected = float(tf.reduce_sum(smoothed)) / REAL.sum()
    loss = SmoothedCrossentropy(smoothing)
    assert float(loss(TARGETS, LOGITS)) == pytest.approx(expected, rel=1e-6)
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(loss)
    )
    assert float(again(TARGETS, LOGITS)) == float(loss(TARGETS, LOGITS))


def test_the_loss_for_compile_weighs_pairs():
    first = SmoothedCrossentropy(0.1)(TARGETS[:1], LOGITS[:1])
    weighted = SmoothedCrossentropy(0.1)(TARGETS, LOGITS, np.array([1.0, 0.0]))
    assert float(weighted) == pytest.approx(float(first), rel=1e-6)


def test_token_accuracy_counts_real_tokens_only():
    accuracy = TokenAccuracy()
    predicted = TARGETS.copy()
    predicted[0, 0] = 2
    predicted[:, 3] = 5  # padding
    accuracy.update_state(TARGETS, np.eye(VOCAB_SIZE, dtype="float32")[predicted])
    assert float(accuracy.result()) == pytest.approx(4 / 5)
