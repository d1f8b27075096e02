"""Make and apply the sublayers that encoder and decoder layers share."""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor

from t2t_repro import registry
from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.branch_networks import BranchedFeedForward
from t2t_repro.layers.branched_attention import BranchedAttention
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.options import AttentionRole, LayerOptions
from t2t_repro.layers.parameter_attention import ParameterAttention
from t2t_repro.layers.residual import ResidualConnection
from t2t_repro.layers.weighted_sublayers import WeightedFeedForward, WeightedHeads


def make_attention(
    options: LayerOptions, role: AttentionRole, **kwargs: Any
) -> MultiheadAttention:
    """Make the attention sublayer of a role.

    Args:
        options: Options of the encoder or decoder layer.
        role: Place of the sublayer.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Returns:
        The sublayer, not yet built.

    Raises:
        UsageError: If no attention is registered under `options.self_attention`.
    """
    if options.is_branched(role) and not options.network_in_attention:
        return WeightedHeads.from_options(options, role, **kwargs)
    if options.is_branched(role):
        return BranchedAttention.from_options(options, role, **kwargs)
    if not role.is_self_attention:
        return MultiheadAttention.from_options(options, role, **kwargs)
    registered = registry.attentions.get(options.self_attention)
    make = getattr(registered, "from_options", registered)
    return make(options, role, **kwargs)


def make_feed_forward(options: LayerOptions, **kwargs: Any) -> keras.layers.Layer:
    """Make the position-wise sublayer of a layer that has a separate one.

    Args:
        options: Options of the encoder or decoder layer.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Returns:
        The sublayer, not yet built.
    """
    if options.branched != "none":
        per_branch = options.branch_residual == "per_branch"
        network = BranchedFeedForward if per_branch else WeightedFeedForward
        return network.from_options(options, **kwargs)
    if options.feed_forward == "parameter_attention":
        return ParameterAttention.from_options(options, **kwargs)
    return FeedForward.from_options(options, **kwargs)


def apply_with_residual(
    sublayer: keras.layers.Layer,
    residual: ResidualConnection,
    x: KerasTensor,
    training: bool | None = None,
) -> KerasTensor:
    """Apply a sublayer with one input, and its residual connection.

    Args:
        sublayer: Function from and to `[batch, length, hidden_size]`.
        residual: Connection around the sublayer.
        x: `[batch, length, hidden_size]`; for `BranchedFeedForward`, the input of every
            branch, `[batch, num_heads, length, hidden_size]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.
    """
    output = sublayer(residual.prepare(x), training=training)
    if isinstance(sublayer, BranchedFeedForward):
        x = sublayer.average(x)
    return residual(x, output, training=training)
