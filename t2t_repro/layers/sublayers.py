"""Choose the sublayers of encoder and decoder layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras

from t2t_repro import registry
from t2t_repro.layers.attention import BlockedAttention, MultiHeadAttention
from t2t_repro.layers.branches import BranchedFeedForward
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.options import (
    AttentionRole,
    LayerStructure,
    Sublayer,
    keyword_arguments,
)
from t2t_repro.layers.parameter_attention import ParameterAttention
from t2t_repro.layers.residual import ResidualConnection
from t2t_repro.layers.weighted import (
    BranchedAttention,
    WeightedFeedForward,
    WeightedHeads,
)

# The classes of `constants.SELF_ATTENTIONS`.
SELF_ATTENTION_CLASSES: Mapping[str, type[MultiHeadAttention]] = {
    "dot_product": MultiHeadAttention,
    "restricted": BlockedAttention,
    "restricted_masked": MultiHeadAttention,
}
# `LayerOptions` has the arguments of these classes.
SUBLAYERS: tuple[type[Sublayer], ...] = (
    MultiHeadAttention,
    BlockedAttention,
    FeedForward,
    ParameterAttention,
    ResidualConnection,
    BranchedAttention,
    WeightedHeads,
    WeightedFeedForward,
    BranchedFeedForward,
)


def _options_of_sublayers() -> list[tuple[str, Any, Any]]:
    """Return the arguments of all sublayers that `LayerStructure` does not have."""
    known = {field.name for field in dataclasses.fields(LayerStructure)}
    known.add("causal")  # the place of an attention decides
    found = {}
    for layer_class in SUBLAYERS:
        for name, argument in keyword_arguments(layer_class).items():
            if name not in known:
                found[name] = (name, argument.annotation, argument.default)
    return list(found.values())


LayerOptions = dataclasses.make_dataclass(
    "LayerOptions",
    _options_of_sublayers(),
    bases=(LayerStructure,),
    namespace={
        "__doc__": "Options of encoder and decoder layers: `LayerStructure`, and the "
        "keyword arguments of all sublayers.",
        "__module__": __name__,
    },
    frozen=True,
    kw_only=True,
)
OPTION_NAMES = frozenset(field.name for field in dataclasses.fields(LayerOptions))


def split_options(
    keywords: Mapping[str, Any],
) -> tuple[LayerStructure, dict[str, Any]]:
    """Split keyword arguments into the options of layers and all others.

    Raises:
        ValueError: If an option has an unknown value, or two contradict each other.
        TypeError: If `num_heads` or `filter_size` is missing.
    """
    options = {n: value for n, value in keywords.items() if n in OPTION_NAMES}
    others = {n: value for n, value in keywords.items() if n not in OPTION_NAMES}
    return LayerOptions(**options), others


def make_attention(
    options: LayerStructure, role: AttentionRole, **kwargs: Any
) -> MultiHeadAttention:
    """Make the attention sublayer of a role.

    Args:
        options: Options of the encoder or decoder layer.
        role: Place of the sublayer.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Returns:
        The sublayer, not yet built.

    Raises:
        UsageError: If `options.self_attention_type` is not registered.
    """
    if options.is_branched(role) and not options.network_in_attention:
        return WeightedHeads.from_options(options, role, **kwargs)
    if options.is_branched(role):
        return BranchedAttention.from_options(options, role, **kwargs)
    if not role.is_self_attention:
        return MultiHeadAttention.from_options(options, role, **kwargs)
    name = options.self_attention_type
    registered = SELF_ATTENTION_CLASSES.get(name) or registry.attentions.get(name)
    make: Any = getattr(registered, "from_options", registered)
    return make(options, role, **kwargs)


def make_feed_forward(options: LayerStructure, **kwargs: Any) -> keras.layers.Layer:
    """Make the position-wise sublayer of a layer that has a separate one.

    Args:
        options: Options of the encoder or decoder layer.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Returns:
        The sublayer, not yet built.
    """
    if options.branched_attention != "none":
        per_branch = options.branch_residual == "per_branch"
        network = BranchedFeedForward if per_branch else WeightedFeedForward
        return network.from_options(options, **kwargs)
    if options.ffn_layer == "parameter_attention":
        return ParameterAttention.from_options(options, **kwargs)
    return FeedForward.from_options(options, **kwargs)
