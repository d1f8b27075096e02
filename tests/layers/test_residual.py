from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.layers import ResidualConnection

X = np.array([[[1.0, 2.0, 3.0, 6.0]]], "float32")
F = np.array([[[1.0, -2.0, 0.0, 1.0]]], "float32")


def connection(norm: str, dropout_rate: float = 0.0) -> ResidualConnection:
    layer = ResidualConnection(
        hidden_size=4, norm=norm, layer_prepostprocess_dropout=dropout_rate
    )
    layer.build()
    return layer


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_applies_to_the_sublayer_and_never_to_the_input(norm):
    zeros = np.zeros_like(F)
    dropped = connection(norm, dropout_rate=0.5)(X, zeros, training=True)
    np.testing.assert_array_equal(dropped, connection(norm)(X, zeros))


def test_dropout_is_active_only_in_training():
    ones = np.ones((1, 1, 1_000), "float32")
    layer = ResidualConnection(
        hidden_size=1_000, norm="pre", layer_prepostprocess_dropout=0.25
    )
    layer.build()
    np.testing.assert_array_equal(layer(0 * ones, ones), ones)
    dropped = layer(0 * ones, ones, training=True).numpy()
    assert set(np.unique(dropped)) == {0.0, np.float32(1 / 0.75)}
    assert (dropped == 0.0).mean() == pytest.approx(0.25, abs=0.06)
