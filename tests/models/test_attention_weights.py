from __future__ import annotations

import functools
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.layers import EncoderLayer
from t2t_repro.layers.attention import capture_weights, keep_weights
from t2t_repro.models.attention_weights import AttentionWeights, attention_weights
from t2t_repro.models.transformer import Transformer
from tests.models.test_transformer import (
    ALL_KINDS,
    BATCH,
    ONE_LAYER,
    SOURCES,
    TARGETS,
    VARIANTS,
    known_model,
    reference_of,
)
from tests.support.numpy_transformer import softmax
from tests.support.tiny_model import tiny_transformer

# Kinds that differ in their attention; the others differ around it.
ATTENTION = {
    name: ALL_KINDS[name]
    for name in ("the paper's", "many heads", "two vocabularies", *VARIANTS)
}


def captured_from(model, batch=BATCH) -> AttentionWeights:
    weights = attention_weights(model, batch)
    return AttentionWeights(
        *(None if x is None else keras.ops.convert_to_numpy(x) for x in weights)
    )


class Known(NamedTuple):
    """A model that no test changes, and its attention for `BATCH`."""

    model: Transformer
    options: dict[str, Any]
    found: AttentionWeights


@pytest.fixture(scope="module")
def known(request) -> Known:
    model, options, _ = known_model(request.param)
    return Known(model, options, captured_from(model))


def reference_weights(reference, stack, kind, keys):
    """Return the reference's weights, `[layer, head, query, key]`, zeros for unseen."""
    layers = []
    for layer in range(reference.num_layers):
        rows = reference.attention_weights[f"{stack}/layer_{layer}/{kind}"]
        rows = [np.pad(row, [(0, 0), (0, keys - row.shape[1])]) for row in rows]
        layers.append(np.stack(rows, axis=1))
    return np.stack(layers)


@pytest.mark.parametrize("known", [*ATTENTION][:3], indirect=True)
def test_weights_of_every_layer_and_head_equal_the_numpy_reference(known):
    found = known.found
    reference = reference_of(known.model, known.options)
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        reference.logits(source, target)
        s, t = len(source), len(target)
        for weights, stack, name, queries, keys in [
            (found.encoder_self, "encoder", "self_attention", s, s),
            (found.decoder_self, "decoder", "self_attention", t, t),
            (found.memory, "decoder", "memory_attention", t, s),
        ]:
            expected = reference_weights(reference, stack, name, keys)
            np.testing.assert_allclose(
                weights[row, :, :, :queries, :keys], expected, rtol=0, atol=1e-5
            )


@pytest.mark.parametrize("known", ATTENTION, indirect=True)
def test_rows_sum_to_one_and_padding_and_the_future_get_exactly_zero(known):
    found = known.found
    plain = keras.ops.convert_to_numpy(known.model(BATCH, training=False))
    np.testing.assert_array_equal(found.logits, plain)  # Capturing changes nothing.
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        s, t = len(source), len(target)
        maps = [found.encoder_self[row, :, :, :s], found.memory[row, :, :, :t]]
        for weights in maps:
            np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-6)
            assert not weights[..., s:].any()
        history = found.decoder_self[row, :, :, :t]
        np.testing.assert_allclose(history.sum(-1), 1.0, rtol=1e-6)
        assert not np.triu(history[..., :t], 1).any()
        assert not history[..., t:].any()


@pytest.mark.parametrize("neighbourhood", [1, 5, 21])
def test_blocks_show_the_weights_of_the_mask(neighbourhood):
    options = {"attention_neighbourhood": neighbourhood, **ONE_LAYER}
    blocked, masked = (
        captured_from(tiny_transformer(seed=3, self_attention_type=name, **options))
        for name in ("restricted", "restricted_masked")
    )
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        for name, n in [("encoder_self", len(source)), ("decoder_self", len(target))]:
            found, expected = (
                getattr(weights, name)[row, :, :, :n] for weights in (blocked, masked)
            )
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
            distance = np.abs(np.subtract.outer(range(n), range(n)))
            assert not found[..., :n][..., distance > neighbourhood // 2].any()


def test_attention_over_parameters_shows_the_rows_attended_to():
    layer = tiny_transformer(seed=3, **ALL_KINDS["over parameters"]).encoder.layers[0]
    network, x = layer.feed_forward, keras.random.normal((3, 6, 8), seed=1)
    with capture_weights() as captured:
        network(x)
    queries = np.split(np.asarray(x @ network.query.kernel.numpy()), 2, axis=-1)
    for head, query in enumerate(queries):
        logits = query @ np.asarray(network.memory_key)[head].T * 8**0.5
        expected = softmax(logits * query.shape[-1] ** -0.5)
        np.testing.assert_allclose(captured[network][:, head], expected, atol=1e-5)
    found = captured_from(known_model("over parameters").model)
    assert found.encoder_parameters.shape == (3, 2, 2, 6, 12)
    assert found.decoder_parameters.shape == (3, 2, 2, 7, 12)
    found = captured_from(known_model("the paper's").model)
    assert found.encoder_parameters is found.decoder_parameters is None


def test_a_traced_function_returns_the_same_weights():
    model = tiny_transformer(seed=3, **ONE_LAYER)
    found = tf.function(functools.partial(attention_weights, model))(BATCH)
    expected = captured_from(model)
    for name in ("encoder_self", "decoder_self", "memory"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), atol=1e-6
        )


def test_a_function_traced_without_a_capture_has_the_same_operations_as_before():
    layer = EncoderLayer(
        num_heads=2,
        filter_size=12,
        self_attention_type="restricted",
        attention_neighbourhood=3,
    )
    spec = tf.TensorSpec([None, None, 8], tf.float32)

    def operations(compute=layer):
        graph = tf.function(compute).get_concrete_function(spec).graph
        return [op.type for op in graph.get_operations()]

    def captured(x):
        with capture_weights() as weights:
            return layer(x), weights[layer.self_attention]

    layer(tf.ones((1, 2, 8)))
    before = operations()
    assert len(operations(captured)) > len(before)
    assert operations() == before


def test_captures_can_be_nested():
    layer = tiny_transformer(seed=3).encoder.layers[0].self_attention
    x = keras.ops.ones((1, 2, 8))
    with capture_weights() as outer:
        layer(x, x)
        with capture_weights() as inner:
            layer(x, x)
        assert list(inner) == [layer]
    assert list(outer) == [layer]
    keep_weights(layer, lambda: pytest.fail("computed outside of a capture"))


def test_a_model_of_another_kind_is_named():
    with pytest.raises(UserError, match="received a model of Sequential"):
        attention_weights(keras.Sequential(), BATCH)


def test_an_attention_that_keeps_no_weights_is_named():
    model = tiny_transformer(seed=3)

    class Silent(keras.layers.Layer):
        def call(self, query, memory, attention_mask=None, training=None):
            return query

    object.__setattr__(model.encoder.layers[1], "self_attention", Silent())
    with pytest.raises(UserError, match="Silent does not show its attention weights"):
        attention_weights(model, BATCH)
