"""Makes the sublayers that `LayerOptions` ask for."""

from __future__ import annotations

from typing import Any

import keras

from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.blocked_attention import BlockedAttention
from t2t_repro.layers.branched_attention import BranchedAttention
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.options import LayerOptions
from t2t_repro.layers.parameter_attention import ParameterAttention
from t2t_repro.layers.residual import ResidualConnection


def make_attention(
    options: LayerOptions,
    *,
    name: str,
    dtype: object,
    causal: bool,
    neighbourhood: int,
    branched: str,
) -> MultiheadAttention:
    """Make an attention sublayer.

    Args:
        options: Of the layer.
        name: Of the sublayer.
        dtype: Its dtype policy.
        causal: Whether later positions are hidden.
        neighbourhood: As for `MultiheadAttention`.
        branched: "none", or the feed-forward networks inside `BranchedAttention`.
    """
    shared: dict[str, Any] = {
        "hidden_size": options.hidden_size,
        "num_heads": options.num_heads,
        "key_channels": options.key_channels,
        "value_channels": options.value_channels,
        "compatibility": options.compatibility,
        "causal": causal,
        "neighbourhood": neighbourhood,
        "dropout_rate": options.attention_dropout,
        "name": name,
        "dtype": dtype,
    }
    if branched != "none":
        return BranchedAttention(
            filter_size=options.filter_size,
            feed_forward=branched,
            normalization=options.branch_normalization,
            top_k=options.branch_top_k,
            relu_dropout=options.relu_dropout,
            **shared,
        )
    if neighbourhood and options.blocked:
        return BlockedAttention(**shared)
    return MultiheadAttention(**shared)


def make_feed_forward(
    options: LayerOptions, *, name: str, dtype: object
) -> keras.layers.Layer:
    """Make the position-wise sublayer."""
    if options.feed_forward == "parameter_attention":
        return ParameterAttention(
            hidden_size=options.hidden_size,
            num_heads=options.parameter_attention_heads,
            memory_rows=options.filter_size,
            key_channels=options.parameter_attention_key_channels,
            value_channels=options.parameter_attention_value_channels,
            dropout_rate=options.attention_dropout,
            name=name,
            dtype=dtype,
        )
    return FeedForward(
        hidden_size=options.hidden_size,
        filter_size=options.filter_size,
        dropout_rate=options.relu_dropout,
        name=name,
        dtype=dtype,
    )


def make_residual(
    options: LayerOptions, *, name: str, dtype: object
) -> ResidualConnection:
    """Make the connection round a sublayer."""
    return ResidualConnection(
        hidden_size=options.hidden_size,
        norm=options.norm,
        dropout_rate=options.residual_dropout,
        epsilon=options.norm_epsilon,
        name=name,
        dtype=dtype,
    )
