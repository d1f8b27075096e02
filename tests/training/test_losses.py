from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.residual import Dropout
from t2t_repro.training.losses import (
    SmoothedCrossentropy,
    TokenAccuracy,
    rdrop_losses,
    token_losses,
    two_copies,
)
from t2t_repro.training.step import StepOptions, make_train_step
from tests.support.numpy_transformer import smoothed_cross_entropy, softmax
from tests.support.tiny_batch import BATCH
from tests.support.tiny_training import Bigrams

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


PASSES = 2.0 * np.random.default_rng(0).normal(size=(4, 4, 7)).astype("float32")
WEIGHT = 5.0


def divergence(p, q):
    return np.sum(p * np.log(p / q), axis=-1)


def rdrop_step(dropout, weight=WEIGHT, learning_rate=0.1, **options):
    keras.utils.set_random_seed(1)
    model = Bigrams(0.0)  # XLA compiles it quickly
    model.dropout = Dropout(dropout, name="dropout")
    optimizer = keras.optimizers.SGD(learning_rate)
    optimizer.build(model.trainable_variables)
    options = StepOptions(0.1, rdrop_weight=weight, **options)
    step = make_train_step(model, optimizer, tf.distribute.get_strategy(), options)
    return step, model


def test_the_loss_has_both_cross_entropies_and_both_divergences():
    loss, nll = rdrop_losses(TARGETS, PASSES, 0.1, WEIGHT)
    passes = [token_losses(TARGETS, logits, 0.1) for logits in np.split(PASSES, 2)]
    p, q = np.split(softmax(PASSES.astype("float64")), 2)
    # Equation 3 of the paper, for a pair of passes; here it is divided by 2.
    both = (divergence(p, q) + divergence(q, p)) / 2
    expected = (passes[0][0] + passes[1][0] + WEIGHT * both) / 2
    np.testing.assert_allclose(loss.numpy()[REAL], expected.numpy()[REAL], rtol=1e-5)
    mean = (passes[0][1] + passes[1][1]) / 2
    np.testing.assert_allclose(nll, mean, rtol=1e-6)


def test_the_gradient_is_that_of_the_formula():
    """Compare with the gradient that TensorFlow derives from both divergences."""
    logits = tf.constant(PASSES)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(logits)
        found = tf.reduce_sum(rdrop_losses(TARGETS, logits, 0.1, WEIGHT)[0])
        first, second = tf.split(tf.nn.log_softmax(logits), 2)
        both = tf.exp(first) * (first - second) + tf.exp(second) * (second - first)
        twice = np.concatenate([TARGETS, TARGETS])
        smoothed = tf.reduce_sum(token_losses(twice, logits, 0.1)[0]) / 2
        distance = tf.reduce_sum(both * REAL[..., None])
        expected = smoothed + WEIGHT / 4 * distance
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(
        tape.gradient(found, logits), tape.gradient(expected, logits), atol=1e-5
    )


def test_passes_that_agree_have_the_loss_of_one():
    twice = two_copies({"logits": PASSES[:2]})["logits"]
    found = rdrop_losses(TARGETS, twice, 0.1, WEIGHT)
    for values, expected in zip(
        found, token_losses(TARGETS, PASSES[:2], 0.1), strict=True
    ):
        np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_without_dropout_the_update_is_that_of_one_pass():
    """So is that of micro-batches, and of a step that XLA compiles."""
    batch = {side: ids[:2] for side, ids in BATCH.items()}
    weights = []
    for options in ({"weight": 0.0}, {"jit_compile": True}, {"micro_batches": 2}):
        step, model = rdrop_step(dropout=0.0, **options)
        step(batch)
        weights.append(model.get_weights())
    for expected, *others in zip(*weights, strict=True):
        for found in others:
            np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_passes_of_a_step_have_different_dropout():
    step, _ = rdrop_step(dropout=0.4)
    results = step(BATCH)
    keras.utils.set_random_seed(1)
    model = rdrop_step(dropout=0.4)[1]
    logits = model(two_copies(BATCH), training=True)
    first, second = np.split(logits.numpy(), 2)
    assert not np.allclose(first, second)
    loss, nll = rdrop_losses(BATCH["targets"], logits, 0.1, WEIGHT)
    assert float(results["loss"]) == pytest.approx(np.sum(loss) / 12, rel=1e-5)
    assert float(results["nll"]) == pytest.approx(np.sum(nll) / 12, rel=1e-5)
    assert float(results["target_tokens"]) == 12


def test_the_second_pass_can_begin_later():
    """Compare two updates with those of one pass, then of two."""
    expected, plain = rdrop_step(dropout=0.4, weight=0.0)
    losses = [float(expected(BATCH)["loss"])]
    twice, model = rdrop_step(dropout=0.4)
    for variable, value in zip(model.variables, plain.variables, strict=True):
        variable.assign(value)
    losses.append(float(twice(BATCH)["loss"]))
    step, later = rdrop_step(dropout=0.4, rdrop_after_steps=1, jit_compile=True)
    assert [float(step(BATCH)["loss"]) for _ in range(2)] == pytest.approx(
        losses, rel=1e-5
    )
    for found, wanted in zip(later.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
