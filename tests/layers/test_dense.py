from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.dense import Dense

X = np.random.default_rng(0).normal(size=(2, 3, 5, 4)).astype("float32")


@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("known", ["all", "length", "none"])
def test_any_rank_with_any_unknown_sizes_gives_what_keras_gives(rank, known):
    x = X[(0,) * (4 - rank)]
    keras_layer = keras.layers.Dense(6, activation="relu", bias_initializer="ones")
    layer = Dense(6, activation="relu", bias_initializer="ones")
    expected = keras_layer(x)
    layer.build((None, 4))
    layer.set_weights(keras_layer.get_weights())
    inner = {"all": x.shape[:-1], "length": (None, *x.shape[1:-1])}
    shape = [*inner.get(known, [None] * (rank - 1)), 4]
    traced = tf.function(layer, input_signature=[tf.TensorSpec(shape, tf.float32)])
    np.testing.assert_allclose(traced(x), expected, rtol=1e-5, atol=1e-6)
    assert layer(x).shape == expected.shape


def test_a_saved_layer_is_loaded_as_itself():
    layer = Dense(3, use_bias=False)
    copy = Dense.from_config(layer.get_config())
    assert (copy.units, copy.use_bias) == (3, False)
    assert keras.saving.get_registered_name(Dense) == "t2t_repro>Dense"
