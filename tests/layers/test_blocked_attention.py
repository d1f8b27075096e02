from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.layers import BlockedAttention, MultiHeadAttention
from tests.support.tiny_model import randomize

RANDOM = np.random.default_rng(0)


def pair_of_layers(**options):
    """Return layers with the same weights, under a mask and in blocks."""
    layers = [
        layer_class(
            hidden_size=8,
            num_heads=2,
            attention_key_channels=8,
            attention_value_channels=4,
            **options,
        )
        for layer_class in (MultiHeadAttention, BlockedAttention)
    ]
    for layer in layers:
        layer.build()
        randomize(layer, seed=1)
    return layers


@pytest.mark.parametrize("compatibility", ["scaled_dot_product", "additive"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [2, 13])
@pytest.mark.parametrize("neighbourhood", [1, 5, 31])
def test_blocks_equal_the_masked_full_attention(
    compatibility, causal, length, neighbourhood
):
    masked, blocked = pair_of_layers(
        attention_compatibility=compatibility,
        causal=causal,
        attention_neighbourhood=neighbourhood,
    )
    x = RANDOM.normal(size=(3, length, 8)).astype("float32")
    real = np.arange(length) < np.array([length, max(length // 2, 1), 1])[:, None]
    expected = np.asarray(masked(x, x, real[:, None, None, :]))
    found = np.asarray(blocked(x, x, real[:, None, None, :]))
    np.testing.assert_allclose(found[real], expected[real], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(blocked(x, x), masked(x, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("neighbourhood", "message"),
    [
        (2, "`attention_neighbourhood` must be"),
        (-3, "`attention_neighbourhood` must be"),
        (0, "must be positive"),
    ],
)
def test_a_neighbourhood_without_a_middle_is_refused(neighbourhood, message):
    with pytest.raises(ValueError, match=message):
        pair_of_layers(attention_neighbourhood=neighbourhood)


def test_a_mask_that_differs_between_queries_is_refused():
    _, blocked = pair_of_layers(attention_neighbourhood=3)
    x = RANDOM.normal(size=(1, 4, 8)).astype("float32")
    with pytest.raises(ValueError, match="the same for all queries"):
        blocked(x, x, np.tri(4, dtype=bool)[None, None])
