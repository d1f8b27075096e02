from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers import Positions, sinusoidal_positions
from tests.support.numpy_transformer import sinusoid


@pytest.mark.parametrize("form", ["interleaved", "concatenated", "halves"])
@pytest.mark.parametrize("width", [4, 6, 512])
def test_sinusoids_equal_the_numpy_reference(form, width):
    positions = np.array([0, 1, 17, 255])
    expected = [sinusoid(position, width, form) for position in positions]
    encodings = sinusoidal_positions(positions, width, form)
    np.testing.assert_allclose(encodings, expected, atol=3e-5)


@pytest.mark.parametrize("form", ["interleaved", "concatenated"])
def test_an_odd_width_ends_in_zeros(form):
    encodings = sinusoidal_positions(np.arange(3), 5, form)
    np.testing.assert_array_equal(encodings[:, 4], np.zeros(3))


def test_learned_positions_are_the_rows_of_the_table_and_zero_beyond():
    positions = Positions(hidden_size=4, kind="learned", max_length=3)
    encodings = positions(np.array([2, 0, 3, 99])).numpy()
    table = positions.table.numpy()
    np.testing.assert_array_equal(encodings, [table[2], table[0], [0] * 4, [0] * 4])


def test_learned_positions_begin_as_tensor2tensors_do():
    layer = Positions(hidden_size=64, kind="learned", max_length=256)
    layer.build()
    limit = math.sqrt(6 / (64 + 256))
    values = np.abs(layer.table.numpy())
    assert 0.98 * limit < values.max() <= limit


def test_large_learned_positions_begin_as_large_as_sinusoids():
    layer = Positions(hidden_size=64, kind="learned_large", max_length=256)
    layer.build()
    sines = sinusoidal_positions(np.arange(256), 64)
    assert np.std(layer.table) == pytest.approx(np.sqrt(np.mean(sines**2)), rel=0.02)


def test_no_positions_are_zeros():
    encodings = Positions(hidden_size=4, kind="none")(np.arange(3))
    np.testing.assert_array_equal(encodings, np.zeros((3, 4)))


def test_sinusoids_are_computed_in_float32_under_mixed_precision():
    # bfloat16 cannot tell position 1001 from 1000.
    layer = Positions(hidden_size=4, kind="interleaved", dtype="mixed_bfloat16")
    expected = sinusoidal_positions(np.array([1000, 1001]), 4)
    assert layer(np.array([1000, 1001])).dtype == tf.bfloat16
    np.testing.assert_allclose(
        tf.cast(layer(np.array([1000, 1001])), "float32"), expected, atol=0.005
    )
