"""What a user of Keras expects of a layer: masks of two axes, scores, widths."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from t2t_repro import layers
from t2t_repro.layers.attention import capture_weights

RANDOM = np.random.default_rng(0)
X, MEMORY = (RANDOM.normal(size=(2, n, 8)).astype("float32") for n in (6, 4))
REAL = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0]], "bool")
MEMORY_REAL = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], "bool")
SIZES = {"num_heads": 2, "filter_size": 12}
STACK = SIZES | {"num_layers": 2, "norm": "pre"}


def four_axes(mask):
    return mask[:, None, None, :]


def masked_by_keras(x, mask):
    return keras.layers.Masking()(np.where(mask[..., None], x, 0.0))


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (layers.MultiHeadAttention(num_heads=2), (X, X)),
        (layers.BlockedAttention(num_heads=2, attention_neighbourhood=5), (X, X)),
        (layers.EncoderLayer(**SIZES), (X,)),
        (layers.Encoder(**STACK), (X,)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_padding_mask_is_a_mask_for_all_queries(layer, inputs):
    expected = layer(*inputs, four_axes(REAL))
    np.testing.assert_array_equal(layer(*inputs, padding_mask=REAL), expected)
    both = layer(*inputs, four_axes(REAL), padding_mask=REAL.astype("int32"))
    np.testing.assert_array_equal(both, expected)
    assert not np.array_equal(layer(*inputs), expected)


@pytest.mark.parametrize(
    "layer",
    [layers.DecoderLayer(**SIZES), layers.Decoder(**STACK)],
    ids=lambda value: type(value).__name__,
)
def test_a_decoder_masks_the_padding_of_both_inputs(layer):
    self_mask = np.broadcast_to(four_axes(REAL), (2, 1, 6, 6))
    expected = layer(X, MEMORY, four_axes(MEMORY_REAL), self_mask)
    found = layer(X, MEMORY, padding_mask=REAL, memory_padding_mask=MEMORY_REAL)
    np.testing.assert_array_equal(found, expected)


def test_the_mask_that_keras_attached_is_used_unless_another_is_given():
    x, memory = masked_by_keras(X, REAL), masked_by_keras(MEMORY, MEMORY_REAL)
    assert x._keras_mask is not None
    encoder, decoder = layers.Encoder(**STACK), layers.Decoder(**STACK)
    plain, plain_memory = np.array(x), np.array(memory)
    encoded = encoder(x)
    np.testing.assert_array_equal(encoded, encoder(plain, padding_mask=REAL))
    np.testing.assert_array_equal(encoded._keras_mask, REAL)
    np.testing.assert_array_equal(
        decoder(x, memory),
        decoder(
            plain, plain_memory, padding_mask=REAL, memory_padding_mask=MEMORY_REAL
        ),
    )
    everything = np.ones_like(REAL)
    attention = layers.MultiHeadAttention(num_heads=2)
    np.testing.assert_array_equal(
        attention(x, x, padding_mask=everything), attention(plain, plain)
    )


@pytest.mark.parametrize(
    "layer",
    [
        layers.MultiHeadAttention(num_heads=2, causal=True),
        layers.BlockedAttention(num_heads=2, attention_neighbourhood=3),
        layers.BranchedAttention(**SIZES),
        layers.WeightedHeads(num_heads=2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_scores_are_the_weights_that_a_capture_shows(layer):
    with capture_weights() as captured:
        output, scores = layer(X, X, four_axes(REAL), return_attention_scores=True)
    np.testing.assert_array_equal(captured[layer], scores)
    assert scores.shape == (2, 2, 6, 6)
    # Of real queries; in blocks, those far from real keys have other weights.
    sums = np.sum(scores, axis=-1).transpose(0, 2, 1)[REAL]
    np.testing.assert_allclose(sums, 1.0, rtol=1e-6)
    np.testing.assert_array_equal(output, layer(X, X, four_axes(REAL)))


def test_an_encoder_layer_returns_the_scores_of_its_attention():
    layer = layers.EncoderLayer(**SIZES)
    output, scores = layer(X, padding_mask=REAL, return_attention_scores=True)
    np.testing.assert_array_equal(output, layer(X, padding_mask=REAL))
    assert scores.shape == (2, 2, 6, 6)
    assert not np.any(np.array(scores)[0, :, :, 5])


@pytest.mark.parametrize(
    ("layer_class", "arguments", "inputs"),
    [
        (layers.MultiHeadAttention, {"num_heads": 2}, (X, X)),
        (layers.BranchedAttention, SIZES | {"branch_residual": "inside"}, (X, X)),
        (layers.WeightedFeedForward, SIZES, (X,)),
        (layers.BranchedFeedForward, SIZES, (X[:, None].repeat(2, axis=1),)),
        (layers.ParameterAttention, {"filter_size": 5}, (X,)),
        (layers.ResidualConnection, {"norm": "pre"}, (X, X)),
        (layers.EncoderLayer, SIZES, (X,)),
        (layers.Decoder, STACK | {"ffn_layer": "parameter_attention"}, (X, MEMORY)),
    ],
)
def test_the_width_of_the_input_is_the_hidden_size(layer_class, arguments, inputs):
    results = []
    for given in ({}, {"hidden_size": 8}):
        keras.utils.set_random_seed(1)
        layer = layer_class(**arguments, **given, name="here")
        results.append(np.array(layer(*inputs)))
        copy = layer_class.from_config(layer.get_config())
        copy(*inputs)
        copy.set_weights(layer.get_weights())
        np.testing.assert_array_equal(copy(*inputs), results[-1])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("layer_class", [layers.EncoderLayer, layers.Decoder])
def test_an_argument_of_nobody_is_refused(layer_class):
    arguments = STACK if layer_class is layers.Decoder else SIZES
    for name in ("causal", "dropuot"):
        with pytest.raises(ValueError, match=name):
            layer_class(**arguments, **{name: True})


def test_build_without_a_width_says_what_is_missing():
    with pytest.raises(ValueError, match="hidden_size=None"):
        layers.FeedForward(filter_size=12).build()
