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


def constant(value: np.ndarray):
    """A sublayer that gives the same for every input."""
    return lambda x: value


def test_post_norm_normalizes_the_sum():
    seen = []
    layer = connection("post")
    joined = layer(X, sublayer=lambda x: seen.append(x) or F)
    np.testing.assert_array_equal(seen[0], X)
    np.testing.assert_allclose(joined, normalized(X + F), atol=1e-5)


def test_pre_norm_normalizes_the_sublayers_input():
    seen = []
    layer = connection("pre")
    joined = layer(X, sublayer=lambda x: seen.append(x) or F)
    np.testing.assert_allclose(seen[0], normalized(X), atol=1e-5)
    np.testing.assert_array_equal(joined, X + F)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_takes_from_the_sublayer_and_never_from_the_input(norm):
    nothing = constant(np.zeros_like(F))
    without_sublayer = connection(norm)(X, sublayer=nothing)
    dropped = connection(norm, dropout_rate=0.5)(X, sublayer=nothing, training=True)
    np.testing.assert_array_equal(dropped, without_sublayer)


def test_dropout_only_in_training():
    ones = np.ones((1, 1, 1_000), "float32")
    layer = ResidualConnection(hidden_size=1_000, norm="pre", dropout_rate=0.25)
    layer.build()
    np.testing.assert_array_equal(layer(0 * ones, sublayer=constant(ones)), ones)
    dropped = layer(0 * ones, sublayer=constant(ones), training=True).numpy()
    assert set(np.unique(dropped)) == {0.0, np.float32(1 / 0.75)}
    assert (dropped == 0.0).mean() == pytest.approx(0.25, abs=0.06)
