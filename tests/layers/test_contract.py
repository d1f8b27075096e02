"""Checks that every public layer must pass, modelled on keras-hub's layer tests."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import layers
from t2t_repro.layers.options import keyword_arguments
from tests.support.tiny_model import randomize

BATCH, LENGTH, MEMORY_LENGTH, WIDTH = 2, 5, 7, 8
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(BATCH, LENGTH, WIDTH)).astype("float32")
MEMORY = RANDOM.normal(size=(BATCH, MEMORY_LENGTH, WIDTH)).astype("float32")
IDS = RANDOM.integers(0, 11, (BATCH, LENGTH)).astype("int32")
SHAPE = (BATCH, LENGTH, WIDTH)
SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "filter_size": 12,
    "num_heads": 2,
    "attention_key_channels": 4,
    "attention_value_channels": 6,
    "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.2,
    "relu_dropout": 0.3,
}
HEADS = {
    name: SIZES[name]
    for name in SIZES
    if "channels" in name or name in ("hidden_size", "num_heads")
}
NETWORK = {"hidden_size": WIDTH, "filter_size": 12, "num_heads": 2}


def contract(layer_class, options, inputs, weights, shape=SHAPE):
    """Describe a layer: its arguments, its inputs, and what it must have.

    Args:
        layer_class: Class of the layer.
        options: Arguments of the class.
        inputs: Arguments of its call.
        weights: Expected number of trainable arrays.
        shape: Expected shape of the output.
    """
    return layer_class, options, inputs, shape, weights


DROPOUTS = {"layer_prepostprocess_dropout", "attention_dropout", "relu_dropout", "rate"}
BOTH, PLACES = (X, MEMORY), (np.arange(LENGTH),)
POSITIONS = {"hidden_size": WIDTH, "kind": "none"}
PARAMETER_ATTENTION = {
    "hidden_size": WIDTH,
    "filter_size": 5,
    "parameter_attention_heads": 2,
    "parameter_attention_key_channels": 4,
    "parameter_attention_value_channels": 6,
    "attention_dropout": 0.1,
}
ADDITIVE = {"attention_compatibility": "additive", "causal": True}
NEAR = {"attention_neighbourhood": 3}
INITIAL = {"branch_gain": "initial", "branch_weights_init": "near_uniform"}
UNIFORM = {"branch_gain": "unit", "branch_weights_init": "uniform"}
INSIDE = {"branch_residual": "inside", "norm_epsilon": 1e-4} | INITIAL
PER_BRANCH = {"branch_residual": "per_branch", "branch_gain": "unit"}
COUNTED = {"hidden_size": WIDTH, "vocab_size": 9, "plus": (2, 4), "minus": (3,)}
CONTRACTS = {
    "multi-head attention": contract(
        layers.MultiHeadAttention, HEADS | {"attention_dropout": 0.1}, BOTH, 4
    ),
    "additive causal attention": contract(
        layers.MultiHeadAttention, HEADS | ADDITIVE | NEAR, (X, X), 5
    ),
    "blocked attention": contract(layers.BlockedAttention, HEADS | NEAR, (X, X), 4),
    "branched attention": contract(
        layers.BranchedAttention, HEADS | NETWORK | {"relu_dropout": 0.1}, BOTH, 10
    ),
    "branched attention, residuals inside": contract(
        layers.BranchedAttention, HEADS | NETWORK | INSIDE, BOTH, 12
    ),
    "weighted heads": contract(
        layers.WeightedHeads, HEADS | PER_BRANCH, BOTH, 5, (BATCH, 2, LENGTH, WIDTH)
    ),
    "weighted feed-forward network": contract(
        layers.WeightedFeedForward, NETWORK | INITIAL | {"relu_dropout": 0.1}, (X,), 5
    ),
    "feed-forward networks of branches": contract(
        layers.BranchedFeedForward, NETWORK | UNIFORM, (np.stack([X, -X], axis=1),), 5
    ),
    "parameter attention": contract(
        layers.ParameterAttention, PARAMETER_ATTENTION, (X,), 4
    ),
    "feed-forward": contract(
        layers.FeedForward, {"filter_size": 12, "relu_dropout": 0.1}, (X,), 4
    ),
    "token embedding": contract(
        layers.TokenEmbedding, {"vocab_size": 11, "hidden_size": WIDTH}, (IDS,), 1
    ),
    "learned positions": contract(
        layers.Positions,
        POSITIONS | {"kind": "learned", "max_length": 4},
        PLACES,
        1,
        (LENGTH, WIDTH),
    ),
    "interleaved sinusoids": contract(
        layers.Positions, POSITIONS | {"kind": "interleaved"}, PLACES, 0, SHAPE[1:]
    ),
    "no positions": contract(layers.Positions, POSITIONS, PLACES, 0, SHAPE[1:]),
    "positions in something else": contract(
        layers.CountedPositions, COUNTED, PLACES, 0, SHAPE[1:]
    ),
    "dropout": contract(layers.Dropout, {"rate": 0.3}, (X,), 0),
    "residual connection": contract(
        layers.ResidualConnection, {"norm": "post", "norm_epsilon": 1e-4}, (X, X), 2
    ),
    "encoder layer": contract(layers.EncoderLayer, SIZES, (X,), 4 + 4 + 2 * 2),
    "branched decoder layer": contract(
        layers.DecoderLayer, SIZES | {"branched_attention": "split"}, BOTH, 18
    ),
    "decoder layer": contract(
        layers.DecoderLayer, SIZES | {"norm": "pre"}, BOTH, 2 * 4 + 4 + 3 * 2
    ),
    "encoder": contract(
        layers.Encoder, SIZES | {"norm": "pre", "num_layers": 2}, (X,), 2 * 12 + 2
    ),
    "decoder": contract(layers.Decoder, SIZES | {"num_layers": 2}, BOTH, 2 * 18),
}


def made(name, **more):
    """Return a layer with random weights, and a function that calls it."""
    layer_class, options, inputs, *_ = CONTRACTS[name]
    layer = layer_class(**options, **more)
    layer(*inputs)
    randomize(layer, seed=0)
    return layer, lambda **given: layer(*inputs, **given)


@pytest.mark.parametrize("name", CONTRACTS)
def test_output_and_weights_are_those_of_the_contract(name):
    layer, run = made(name)
    *_, shape, num_weights = CONTRACTS[name]
    output = run()
    assert (tuple(output.shape), output.dtype) == (shape, tf.float32)
    assert len(layer.trainable_weights) == num_weights
    paths = [weight.path for weight in layer.weights]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_copy_by_its_configuration_computes_the_same(name):
    layer, run = made(name)
    config = keras.saving.serialize_keras_object(layer)
    copy = keras.saving.deserialize_keras_object(config)
    assert type(copy) is type(layer)
    assert copy.get_config() == layer.get_config()
    inputs = CONTRACTS[name][2]
    copy(*inputs)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(copy(*inputs), run())


@pytest.mark.parametrize("name", CONTRACTS)
def test_gradients_reach_every_weight(name):
    layer, run = made(name)
    with tf.GradientTape() as tape:
        output = run()
        # Not a plain sum, because the sum of a layer normalization is constant.
        loss = tf.reduce_sum(output * tf.random.stateless_normal(output.shape, (1, 2)))
    weights = layer.trainable_weights
    gradients = tape.gradient(loss, [weight.value for weight in weights])
    for weight, gradient in zip(weights, gradients, strict=True):
        assert gradient is not None, weight.path
        assert np.any(tf.convert_to_tensor(gradient).numpy() != 0.0), weight.path


@pytest.mark.parametrize("name", CONTRACTS)
def test_mixed_precision_keeps_weights_in_float32(name):
    layer, run = made(name, dtype="mixed_bfloat16")
    assert run().dtype == tf.bfloat16
    assert all(weight.dtype == "float32" for weight in layer.trainable_weights)


@pytest.mark.parametrize(
    "name",
    [name for name, (_, options, *_) in CONTRACTS.items() if DROPOUTS & {*options}],
)
def test_dropout_is_active_only_in_training(name):
    _, run = made(name)
    np.testing.assert_array_equal(run(), run(training=False))
    assert not np.array_equal(run(training=True), run())


def test_the_mask_of_the_memory_can_be_a_positional_none():
    layer = layers.DecoderLayer(**SIZES)
    np.testing.assert_array_equal(layer(X, MEMORY, None), layer(X, MEMORY))


def test_every_public_layer_has_a_contract():
    public = {
        value
        for name, value in vars(layers).items()
        if name in layers.__all__
        and isinstance(value, type)
        and issubclass(value, keras.layers.Layer)
    }
    tested = {layer_class for layer_class, *_ in CONTRACTS.values()}
    assert public == tested


# Keras 3.15 reads TensorFlow variables in a way that NumPy 2 warns of.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_layers_make_a_functional_model_of_any_length(tmp_path):
    x = keras.Input((None, WIDTH))
    memory = keras.Input((None, WIDTH))
    encoded = layers.EncoderLayer(**SIZES)(memory)
    y = layers.MultiHeadAttention(**HEADS)(x, encoded)
    y = layers.FeedForward(hidden_size=WIDTH, filter_size=12)(y)
    model = keras.Model([x, memory], y)
    assert model([X, MEMORY]).shape == SHAPE
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded([X, MEMORY]), model([X, MEMORY]))


ATTENTION = {"hidden_size": 8, "num_heads": 3}
PARAMETERS = {"hidden_size": 8, "filter_size": 5}
IMPOSSIBLE = [
    (
        layers.MultiHeadAttention,
        ATTENTION | {"attention_key_channels": 8, "attention_value_channels": 9},
        "Received: num_heads=3, attention_key_channels=8",
    ),
    (
        layers.MultiHeadAttention,
        ATTENTION | {"attention_key_channels": 9, "attention_value_channels": 8},
        "Received: num_heads=3, attention_value_channels=8",
    ),
    (
        layers.ParameterAttention,
        PARAMETERS | {"hidden_size": 9, "parameter_attention_heads": 2},
        "Received: num_heads=2, parameter_attention_key_channels=9",
    ),
    (
        layers.ParameterAttention,
        PARAMETERS
        | {"parameter_attention_heads": 4, "parameter_attention_value_channels": 6},
        "Received: num_heads=4, parameter_attention_value_channels=6",
    ),
    (layers.ResidualConnection, {"norm": "both"}, "Received: 'both'"),
    (layers.Positions, {"hidden_size": 8, "kind": "sine"}, "Received: 'sine'"),
    (layers.Positions, {"hidden_size": 8, "kind": "learned"}, "max_length=0"),
    (
        layers.CountedPositions,
        {"hidden_size": 8, "vocab_size": 9, "plus": (), "columns": "mixed"},
        "Received: 'mixed'",
    ),
    (layers.EncoderLayer, SIZES | {"attention_neighbourhood": 3}, "neighbourhood=3"),
    (
        layers.EncoderLayer,
        SIZES | {"branched_attention": "split", "self_attention_type": "restricted"},
        "branched_attention=split, self_attention_type=restricted",
    ),
    (
        layers.EncoderLayer,
        SIZES | {"branched_attention": "shared", "branch_residual": "shared"},
        "alpha has no effect",
    ),
    (
        layers.EncoderLayer,
        SIZES | PER_BRANCH | {"branched_attention": "shared"},
        "an average of whole networks",
    ),
    *(
        (layers.EncoderLayer, SIZES | {"branched_attention": "split", name: "x"}, name)
        for name in (
            *("norm", "attention_compatibility", "ffn_layer", "branched_attention"),
            *("branched_in_decoder", "branch_normalization", "branch_residual"),
            *("branch_gain", "branch_weights_init"),
        )
    ),
]


@pytest.mark.parametrize(("layer_class", "options", "received"), IMPOSSIBLE)
def test_impossible_arguments_are_named(layer_class, options, received):
    with pytest.raises(ValueError, match=received):
        layer_class(**options)


BRANCHED = {
    layers.BranchedFeedForward: NETWORK,
    layers.WeightedFeedForward: NETWORK,
    layers.WeightedHeads: HEADS,
    layers.BranchedAttention: HEADS | NETWORK,
}
IMPOSSIBLE_BRANCHES = [
    ({"branch_normalization": "none"}, "`branch_normalization`.*Received: 'none'"),
    ({"branch_residual": "x"}, "`branch_residual` must be"),
    ({"branch_gain": "M"}, "`branch_gain`.*Received: 'M'"),
    ({"branch_weights_init": "normal"}, "`branch_weights_init`.*Received: 'normal'"),
    ({"branch_top_k": 3}, "`branch_top_k`.*Received: branch_top_k=3, num_heads=2"),
    ({"branch_top_k": -1}, "`branch_top_k`.*Received: branch_top_k=-1, num_heads=2"),
    ({"branched_attention": "both"}, "`branched_attention`.*Received: 'both'"),
    ({"filter_size": 13}, "Received: num_heads=2, filter_size=13"),
]


@pytest.mark.parametrize(
    ("layer_class", "changes", "received"),
    [
        (layer_class, changes, received)
        for layer_class in BRANCHED
        for changes, received in IMPOSSIBLE_BRANCHES
        if changes.keys() <= keyword_arguments(layer_class).keys()
    ],
)
def test_impossible_options_of_branches_are_named(layer_class, changes, received):
    with pytest.raises(ValueError, match=received):
        layer_class(**BRANCHED[layer_class] | changes)
