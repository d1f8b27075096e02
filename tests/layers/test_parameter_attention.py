from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.layers import ParameterAttention
from tests.support.tiny_model import randomize

RANDOM = np.random.default_rng(0)
D, HEADS, ROWS, KEYS, VALUES = 8, 2, 5, 6, 4


def built(width, heads, rows, keys, values, **options):
    layer = ParameterAttention(
        hidden_size=width,
        parameter_attention_heads=heads,
        filter_size=rows,
        parameter_attention_key_channels=keys,
        parameter_attention_value_channels=values,
        **options,
    )
    layer.build()
    return layer


def sublayer(dropout_rate=0.0):
    layer = built(D, HEADS, ROWS, KEYS, VALUES, attention_dropout=dropout_rate)
    randomize(layer, seed=1)
    return layer


def written_out(layer, x):
    """Compute the section's formula, one vector and one head at a time."""
    key, value = (np.asarray(w) for w in (layer.memory_key, layer.memory_value))
    query, output = (
        np.asarray(p.kernel) for p in (layer.query, layer.output_projection)
    )
    result = np.zeros(x.shape)
    for place in np.ndindex(x.shape[:-1]):
        heads = []
        for n in range(HEADS):
            q = (x[place] @ query)[n * 3 : n * 3 + 3]
            logits = (np.sqrt(D) * key[n]) @ q / np.sqrt(3)
            weights = np.exp(logits) / np.exp(logits).sum()
            heads.append(weights @ (np.sqrt(D) * value[n]))
        result[place] = np.concatenate(heads) @ output
    return result


def test_it_equals_the_formula_written_out():
    layer = sublayer()
    x = RANDOM.normal(size=(2, 3, D)).astype("float32")
    np.testing.assert_allclose(layer(x), written_out(layer, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("heads", "rows", "channels"), [(8, 1536, 512), (16, 512, 1024)]
)
def test_a_sublayer_has_as_many_parameters_as_the_papers_feed_forward_network(
    heads, rows, channels
):
    layer = built(512, heads, rows, channels, channels)
    assert layer.count_params() == 2_097_152 == 2 * 512 * 2048


def test_keys_and_values_begin_at_the_scale_of_embeddings():
    layer = built(64, 4, 100, 64, 64)
    for memory in (layer.memory_key, layer.memory_value):
        assert np.std(memory.numpy()) == pytest.approx(64**-0.5, rel=0.05)


def test_a_dropped_row_is_dropped_for_every_position():
    x = RANDOM.normal(size=(2, 7, D)).astype("float32")
    layer = sublayer(dropout_rate=0.5)
    np.testing.assert_array_equal(layer(x, training=False), sublayer()(x))
    same = np.repeat(x[:1, :1], 7, axis=1)
    dropped = np.asarray(layer(same, training=True))
    np.testing.assert_allclose(dropped, np.repeat(dropped[:, :1], 7, axis=1), rtol=1e-5)
    assert not np.allclose(dropped, layer(same, training=False))
