from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from t2t_repro import layers
from t2t_repro.layers.options import keyword_arguments
from tests.support.layer_contract import check_layer

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
    for name in (
        "hidden_size",
        "num_heads",
        "attention_key_channels",
        "attention_value_channels",
    )
}
NETWORK = {"hidden_size": WIDTH, "filter_size": 12, "num_heads": 2}


# class, options, call, shape of the output, trainable arrays
CONTRACTS = {
    "multi-head attention": (
        layers.MultiHeadAttention,
        HEADS
        | {
            "attention_dropout": 0.1,
        },
        lambda layer: layer(X, MEMORY),
        SHAPE,
        4,
    ),
    "additive causal attention": (
        layers.MultiHeadAttention,
        HEADS
        | {
            "attention_compatibility": "additive",
            "causal": True,
            "attention_neighbourhood": 3,
        },
        lambda layer: layer(X, X),
        SHAPE,
        5,
    ),
    "blocked attention": (
        layers.BlockedAttention,
        HEADS
        | {
            "attention_neighbourhood": 3,
        },
        lambda layer: layer(X, X),
        SHAPE,
        4,
    ),
    "branched attention": (
        layers.BranchedAttention,
        HEADS
        | {
            "filter_size": 12,
            "relu_dropout": 0.1,
        },
        lambda layer: layer(X, MEMORY),
        SHAPE,
        4 + 4 + 2,
    ),
    "branched attention, residuals inside": (
        layers.BranchedAttention,
        HEADS
        | {
            "filter_size": 12,
            "branch_residual": "inside",
            "branch_gain": "initial",
            "branch_weights_init": "near_uniform",
            "norm_epsilon": 1e-4,
        },
        lambda layer: layer(X, MEMORY),
        SHAPE,
        4 + 4 + 2 + 2,
    ),
    "weighted heads": (
        layers.WeightedHeads,
        HEADS
        | {
            "branch_residual": "per_branch",
            "branch_gain": "unit",
        },
        lambda layer: layer(X, MEMORY),
        (BATCH, 2, LENGTH, WIDTH),
        4 + 1,
    ),
    "weighted feed-forward network": (
        layers.WeightedFeedForward,
        NETWORK
        | {
            "relu_dropout": 0.1,
            "branch_gain": "initial",
            "branch_weights_init": "near_uniform",
        },
        lambda layer: layer(X),
        SHAPE,
        4 + 1,
    ),
    "feed-forward networks of branches": (
        layers.BranchedFeedForward,
        NETWORK
        | {
            "relu_dropout": 0.1,
            "branch_gain": "unit",
            "branch_weights_init": "uniform",
        },
        lambda layer: layer(np.stack([X, -X], axis=1)),
        SHAPE,
        4 + 1,
    ),
    "parameter attention": (
        layers.ParameterAttention,
        {
            "hidden_size": WIDTH,
            "filter_size": 5,
            "parameter_attention_heads": 2,
            "parameter_attention_key_channels": 4,
            "parameter_attention_value_channels": 6,
            "attention_dropout": 0.1,
        },
        lambda layer: layer(X),
        SHAPE,
        4,
    ),
    "feed-forward": (
        layers.FeedForward,
        {"hidden_size": WIDTH, "filter_size": 12, "relu_dropout": 0.1},
        lambda layer: layer(X),
        SHAPE,
        4,
    ),
    "token embedding": (
        layers.TokenEmbedding,
        {"vocab_size": 11, "hidden_size": WIDTH},
        lambda layer: layer(IDS),
        SHAPE,
        1,
    ),
    "learned positions": (
        layers.Positions,
        {"hidden_size": WIDTH, "kind": "learned", "max_length": 4},
        lambda layer: layer(np.arange(LENGTH)),
        (LENGTH, WIDTH),
        1,
    ),
    "interleaved sinusoids": (
        layers.Positions,
        {"hidden_size": WIDTH, "kind": "interleaved"},
        lambda layer: layer(np.arange(LENGTH)),
        (LENGTH, WIDTH),
        0,
    ),
    "no positions": (
        layers.Positions,
        {"hidden_size": WIDTH, "kind": "none"},
        lambda layer: layer(np.arange(LENGTH)),
        (LENGTH, WIDTH),
        0,
    ),
    "positions in something else": (
        layers.CountedPositions,
        {"hidden_size": WIDTH, "vocab_size": 9, "plus": (2, 4), "minus": (3,)},
        lambda layer: layer(np.arange(LENGTH)),
        (LENGTH, WIDTH),
        0,
    ),
    "dropout": (layers.Dropout, {"rate": 0.3}, lambda layer: layer(X), SHAPE, 0),
    "residual connection": (
        layers.ResidualConnection,
        {
            "hidden_size": WIDTH,
            "norm": "post",
            "layer_prepostprocess_dropout": 0.3,
            "norm_epsilon": 1e-4,
        },
        lambda layer: layer(X, 2 * X),
        SHAPE,
        2,
    ),
    "encoder layer": (
        layers.EncoderLayer,
        SIZES,
        lambda layer: layer(X),
        SHAPE,
        4 + 4 + 2 * 2,
    ),
    "branched decoder layer": (
        layers.DecoderLayer,
        SIZES | {"branched_attention": "split"},
        lambda layer: layer(X, MEMORY),
        SHAPE,
        4 + 4 + 4 + 2 + 2 * 2,
    ),
    "decoder layer": (
        layers.DecoderLayer,
        SIZES | {"norm": "pre", "norm_epsilon": 1e-5},
        lambda layer: layer(X, MEMORY),
        SHAPE,
        2 * 4 + 4 + 3 * 2,
    ),
    "encoder": (
        layers.Encoder,
        SIZES | {"norm": "pre"} | {"num_layers": 2},
        lambda layer: layer(X),
        SHAPE,
        2 * 12 + 2,
    ),
    "decoder": (
        layers.Decoder,
        SIZES | {"num_layers": 2},
        lambda layer: layer(X, MEMORY),
        SHAPE,
        2 * 18,
    ),
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_it_keeps_the_contract_of_a_keras_layer(name):
    check_layer(*CONTRACTS[name])


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
        "branched_attention='split', self_attention_type='restricted'",
    ),
    (
        layers.EncoderLayer,
        SIZES | {"branched_attention": "shared", "branch_residual": "shared"},
        "alpha has no effect",
    ),
    (
        layers.EncoderLayer,
        SIZES
        | {
            "branched_attention": "shared",
            "branch_residual": "per_branch",
            "branch_gain": "unit",
        },
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
    layers.BranchedAttention: HEADS | {"filter_size": 12},
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
