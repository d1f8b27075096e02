from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.layers import ResidualConnection

X = np.array([[[1.0, 2.0, 3.0, 6.0]]], "float32")
F = np.array([[[1.0, -2.0, 0.0, 1.0]]], "float32")


def connection(norm: str, dropout_rate: float = 0.0) -> ResidualConnection:
    layer = ResidualConnection(hidden_size=4, norm=norm, dropout_rate=dropout_rate)
    layer.build()
    return layer


def normalized(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def test_post_norm_normalizes_the_sum():
    layer = connection("post")
    np.testing.assert_array_equal(layer.before(X), X)
    np.testing.assert_allclose(layer.after(X, F), normalized(X + F), atol=1e-5)


def test_pre_norm_normalizes_the_sublayers_input():
    layer = connection("pre")
    np.testing.assert_allclose(layer.before(X), normalized(X), atol=1e-5)
    np.testing.assert_array_equal(layer.after(X, F), X + F)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_takes_from_the_sublayer_and_never_from_the_input(norm):
    layer = connection(norm, dropout_rate=0.5)
    without_sublayer = connection(norm).after(X, np.zeros_like(F))
    dropped = layer.after(X, np.zeros_like(F), training=True)
    np.testing.assert_array_equal(dropped, without_sublayer)


def test_dropout_only_in_training():
    ones = np.ones((1, 1, 1_000), "float32")
    layer = ResidualConnection(hidden_size=1_000, norm="pre", dropout_rate=0.25)
    np.testing.assert_array_equal(layer.after(0 * ones, ones), ones)
    dropped = layer.after(0 * ones, ones, training=True).numpy()
    assert set(np.unique(dropped)) == {0.0, np.float32(1 / 0.75)}
    assert (dropped == 0.0).mean() == pytest.approx(0.25, abs=0.06)
