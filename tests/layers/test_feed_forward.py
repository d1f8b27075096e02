from __future__ import annotations

import numpy as np

from t2t_repro.layers import FeedForward
from tests.support.tiny_model import randomize

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")


def network(dropout_rate: float = 0.0) -> FeedForward:
    layer = FeedForward(hidden_size=4, filter_size=8, relu_dropout=dropout_rate)
    layer.build()
    randomize(layer, seed=1)
    return layer


def test_it_is_equation_2():
    layer = network()
    w_1, b_1, w_2, b_2 = layer.get_weights()
    expected = np.maximum(0.0, X @ w_1 + b_1) @ w_2 + b_2
    np.testing.assert_allclose(layer(X), expected, rtol=1e-5, atol=1e-6)


def test_positions_do_not_see_each_other():
    layer = network()
    changed = X.copy()
    changed[:, 1] += 1.0
    same = np.isclose(layer(X), layer(changed), atol=1e-6).all(axis=(0, 2))
    assert same.tolist() == [True, False, True]


def test_relu_dropout_is_active_only_in_training():
    np.testing.assert_array_equal(network(0.5)(X), network()(X))
    assert not np.array_equal(network(0.5)(X, training=True), network()(X))
