"""Checks that every public layer must pass, modelled on keras-hub's layer tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.support.tiny_model import randomize

# Runs a layer on inputs chosen by the caller, and returns its output.
Run = Callable[..., Any]


def check_layer(
    layer_class: type[keras.layers.Layer],
    options: dict[str, Any],
    run: Run,
    output_shape: tuple[int, ...],
    num_weights: int,
) -> None:
    """Check configuration, weights, gradients and mixed precision of a layer.

    Args:
        layer_class: Class of the layer.
        options: Arguments of the class.
        run: Calls a layer of the class and returns its output.
        output_shape: Expected shape of the output.
        num_weights: Expected number of trainable arrays.
    """
    layer = layer_class(**options)
    output = run(layer)
    randomize(layer, seed=0)
    assert tuple(output.shape) == output_shape
    assert output.dtype == tf.float32
    assert len(layer.trainable_weights) == num_weights
    check_paths_are_unique(layer)
    check_copy_computes_the_same(layer, run)
    check_gradients_reach_every_weight(layer, run)
    check_mixed_precision(layer_class, options, run)


def check_paths_are_unique(layer: keras.layers.Layer) -> None:
    paths = [weight.path for weight in layer.weights]
    assert len(set(paths)) == len(paths)


def check_copy_computes_the_same(layer: keras.layers.Layer, run: Run) -> None:
    config = keras.saving.serialize_keras_object(layer)
    copy = keras.saving.deserialize_keras_object(config)
    assert type(copy) is type(layer)
    assert copy.get_config() == layer.get_config()
    run(copy)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(run(copy).numpy(), run(layer).numpy())


def check_gradients_reach_every_weight(layer: keras.layers.Layer, run: Run) -> None:
    with tf.GradientTape() as tape:
        output = run(layer)
        # Not a plain sum, because the sum of a layer normalization is constant.
        loss = tf.reduce_sum(output * tf.random.stateless_normal(output.shape, (1, 2)))
    for weight, gradient in zip(
        layer.trainable_weights,
        tape.gradient(loss, [w.value for w in layer.trainable_weights]),
        strict=True,
    ):
        assert gradient is not None, weight.path
        assert np.any(tf.convert_to_tensor(gradient).numpy() != 0.0), weight.path


def check_mixed_precision(
    layer_class: type[keras.layers.Layer], options: dict[str, Any], run: Run
) -> None:
    layer = layer_class(**options, dtype="mixed_bfloat16")
    assert run(layer).dtype == tf.bfloat16
    assert all(weight.dtype == "float32" for weight in layer.trainable_weights)
