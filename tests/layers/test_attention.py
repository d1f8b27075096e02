from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2t_repro.layers import (
    MultiHeadAttention,
    causal_mask,
    masked_softmax,
    padding_mask,
    scaled_dot_product,
)
from tests.support.tiny_model import randomize

RANDOM = np.random.default_rng(0)


def heads(length: int, depth: int) -> np.ndarray:
    """Return random numbers, `[batch 2, num_heads 3, length, depth]`."""
    return RANDOM.normal(size=(2, 3, length, depth)).astype("float32")


QUERY, KEY = heads(4, 8), heads(5, 8)


def attention_weights(query, key, mask=None):
    return masked_softmax(scaled_dot_product(query, key), mask)


def block(**options: Any) -> MultiHeadAttention:
    attention = MultiHeadAttention(
        hidden_size=8,
        num_heads=2,
        attention_key_channels=8,
        attention_value_channels=6,
        **options,
    )
    attention.build()
    randomize(attention, seed=1)
    return attention


def test_without_scaling_the_logits_are_sqrt_d_k_times_as_large():
    scaled = block()
    plain = block(attention_compatibility="dot_product")
    logits = [np.asarray(layer.logits(QUERY, KEY)) for layer in (scaled, plain)]
    # A sum of eight products of about 1 rounds to 1e-6, also where it is near 0.
    np.testing.assert_allclose(logits[1], np.sqrt(8) * logits[0], rtol=1e-5, atol=1e-6)


def test_additive_attention_is_bahdanaus():
    layer = block(attention_compatibility="additive")
    query, key = QUERY[:, :2, :, :4], KEY[:, :2, :, :4]
    vector = np.asarray(layer.compatibility_vector)
    logits = np.asarray(layer.logits(query, key))
    for b, n, t, s in np.ndindex(logits.shape):
        expected = vector[n] @ np.tanh(query[b, n, t] + key[b, n, s])
        assert logits[b, n, t, s] == pytest.approx(expected, abs=1e-5)


def test_a_causal_block_also_applies_a_given_mask():
    x = RANDOM.normal(size=(2, 5, 8)).astype("float32")
    mask = RANDOM.random((2, 1, 5, 5)) < 0.5
    mask[..., 0] = True
    np.testing.assert_array_equal(
        block(causal=True)(x, x, mask), block()(x, x, mask & np.tri(5, dtype=bool))
    )


def test_a_neighbourhood_combines_with_the_other_masks():
    x = RANDOM.normal(size=(2, 5, 8)).astype("float32")
    real = np.arange(5) < np.array([5, 3])[:, None]
    steps = np.arange(5)[:, None] - np.arange(5)
    expected = real[:, None, None, :] & (np.abs(steps) <= 1) & (steps >= 0)
    found = block(causal=True, attention_neighbourhood=3)(x, x, real[:, None, None, :])
    # Rows of padding may see no key; their weights are equal and meaningless.
    rows = expected.any(-1)[:, 0]
    np.testing.assert_array_equal(found[rows], block()(x, x, expected)[rows])


def test_a_query_with_everything_masked_gets_equal_weights():
    weights = attention_weights(QUERY, KEY, np.zeros(5, bool))
    np.testing.assert_allclose(weights, np.full((2, 3, 4, 5), 0.2), rtol=1e-6)


def test_padding_may_not_be_attended_to():
    mask = padding_mask(np.array([[5, 2, 1, 0], [7, 1, 0, 0]], "int32"))
    expected = [[[[True, True, True, False]]], [[[True, True, False, False]]]]
    np.testing.assert_array_equal(mask, expected)


def test_a_position_sees_itself_and_earlier_positions():
    expected = [[[[True, False, False], [True, True, False], [True, True, True]]]]
    np.testing.assert_array_equal(causal_mask(3), expected)
