"""Every option reaches its argument of the sublayer.

All values differ, so that exchanged arguments are noticed.
"""

from __future__ import annotations

import dataclasses

import pytest

from t2t_repro import constants
from t2t_repro.errors import UsageError
from t2t_repro.layers import (
    AttentionRole,
    BlockedAttention,
    BranchedAttention,
    Decoder,
    Encoder,
    FeedForward,
    LayerOptions,
    MultiHeadAttention,
    ParameterAttention,
    ResidualConnection,
    encoder_decoder,
)
from t2t_repro.layers.encoder_decoder import (
    make_attention,
    make_feed_forward,
)

OPTIONS = LayerOptions(
    hidden_size=20,
    filter_size=36,
    num_heads=4,
    attention_key_channels=8,
    attention_value_channels=12,
    norm="pre",
    norm_epsilon=1e-3,
    layer_prepostprocess_dropout=0.1,
    attention_dropout=0.2,
    relu_dropout=0.3,
    attention_compatibility="additive",
    parameter_attention_heads=2,
    parameter_attention_key_channels=16,
    parameter_attention_value_channels=28,
)
RESTRICTED = dataclasses.replace(
    OPTIONS, self_attention_type="restricted", attention_neighbourhood=7
)
BRANCHED = dataclasses.replace(
    OPTIONS,
    branched_attention="shared",
    branched_in_decoder="self",
    branch_normalization="softmax",
    branch_top_k=3,
)
ATTENTION = {
    "hidden_size": 20,
    "num_heads": 4,
    "attention_key_channels": 8,
    "attention_value_channels": 12,
    "attention_compatibility": "additive",
    "attention_neighbourhood": 0,
    "attention_dropout": 0.2,
}
ENCODER_SELF, DECODER_SELF, MEMORY = AttentionRole


def own_config(layer) -> dict:
    """Return the configuration of a layer, without what every Keras layer has."""
    config = layer.get_config()
    for name in ("name", "trainable", "dtype"):
        del config[name]
    return config


@pytest.mark.parametrize(
    ("role", "causal"), [(ENCODER_SELF, False), (DECODER_SELF, True), (MEMORY, False)]
)
def test_attention_gets_its_options_and_is_causal_in_its_role(role, causal):
    attention = make_attention(OPTIONS, role, name="here", dtype="mixed_bfloat16")
    assert type(attention) is MultiHeadAttention
    assert own_config(attention) == ATTENTION | {"causal": causal}
    assert attention.name == "here"
    assert attention.dtype_policy.name == "mixed_bfloat16"


@pytest.mark.parametrize(("role", "causal"), [(ENCODER_SELF, False), (MEMORY, False)])
def test_only_self_attention_is_restricted(role, causal):
    attention = make_attention(RESTRICTED, role)
    restricted = role is ENCODER_SELF
    assert type(attention) is (BlockedAttention if restricted else MultiHeadAttention)
    neighbourhood = {
        "attention_neighbourhood": 7 if restricted else 0,
        "causal": causal,
    }
    assert own_config(attention) == ATTENTION | neighbourhood


@pytest.mark.parametrize(("role", "causal"), [(ENCODER_SELF, False), (DECODER_SELF, 1)])
def test_branched_attention_gets_its_options(role, causal):
    attention = make_attention(BRANCHED, role)
    assert type(attention) is BranchedAttention
    assert own_config(attention) == ATTENTION | {
        "causal": bool(causal),
        "filter_size": 36,
        "branched_attention": "shared",
        "branch_normalization": "softmax",
        "branch_top_k": 3,
        "relu_dropout": 0.3,
        "branch_residual": "around",
        "branch_gain": "none",
        "branch_weights_init": "random",
        "norm_epsilon": 1e-3,
    }


@pytest.mark.parametrize(
    ("in_decoder", "branched"),
    [("memory", {ENCODER_SELF, MEMORY}), ("self", {ENCODER_SELF, DECODER_SELF})],
)
def test_two_of_the_three_roles_are_branched(in_decoder, branched):
    options = dataclasses.replace(BRANCHED, branched_in_decoder=in_decoder)
    assert {role for role in AttentionRole if options.is_branched(role)} == branched
    assert not any(OPTIONS.is_branched(role) for role in AttentionRole)


def test_an_attention_that_is_not_registered_is_refused_with_the_closest_names():
    options = dataclasses.replace(OPTIONS, self_attention_type="restrictd")
    with pytest.raises(UsageError, match="Did you mean restricted"):
        make_attention(options, ENCODER_SELF)


def test_every_built_in_attention_is_declared_with_its_module():
    declared = {name: entry.module for name, entry in constants.SELF_ATTENTIONS.items()}
    classes = encoder_decoder.SELF_ATTENTIONS.items()
    assert declared == {name: each.__module__ for name, each in classes}


def test_the_feed_forward_network_gets_its_options():
    layer = make_feed_forward(OPTIONS)
    assert type(layer) is FeedForward
    assert own_config(layer) == {
        "hidden_size": 20,
        "filter_size": 36,
        "relu_dropout": 0.3,
    }


def test_attention_over_parameters_gets_its_options():
    options = dataclasses.replace(OPTIONS, ffn_layer="parameter_attention")
    layer = make_feed_forward(options)
    assert type(layer) is ParameterAttention
    assert own_config(layer) == {
        "hidden_size": 20,
        "filter_size": 36,
        "parameter_attention_heads": 2,
        "parameter_attention_key_channels": 16,
        "parameter_attention_value_channels": 28,
        "attention_dropout": 0.2,
    }


def test_the_residual_connection_gets_its_options():
    assert own_config(ResidualConnection.from_options(OPTIONS)) == {
        "hidden_size": 20,
        "norm": "pre",
        "layer_prepostprocess_dropout": 0.1,
        "norm_epsilon": 1e-3,
    }


@pytest.mark.parametrize("stack", [Encoder, Decoder])
def test_only_pre_norm_has_a_last_normalization_with_its_epsilon(stack):
    pre_norm = stack(
        **dataclasses.asdict(OPTIONS), num_layers=1, dtype="mixed_bfloat16"
    )
    assert pre_norm.final_normalization.epsilon == 1e-3
    assert pre_norm.final_normalization.dtype_policy.name == "mixed_bfloat16"
    post_norm = dataclasses.replace(OPTIONS, norm="post")
    post = stack(**dataclasses.asdict(post_norm), num_layers=1)
    assert post.final_normalization is None
