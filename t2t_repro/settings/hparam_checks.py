"""Check how the values of hparams fit together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_repro.constants import (
    LEARNING_RATE_FACTORS,
    SINUSOIDS,
    WIRINGS,
    layer_contradictions,
)

if TYPE_CHECKING:
    from t2t_repro.settings.hparams import HParams


def contradictions(h: HParams) -> Iterator[str]:
    """Yield a message for every combination of values that cannot make a model."""
    yield from _schedule_contradictions(h)
    yield from _head_contradictions(h, "attention", "num_heads")
    yield from layer_contradictions(h)
    yield from _self_attention_contradictions(h)
    if h.ffn_layer == "parameter_attention":
        own = (
            "parameter_attention_heads" if h.parameter_attention_heads else "num_heads"
        )
        yield from _head_contradictions(h, "parameter_attention", own)
    if h.branched_attention != "none":
        yield from _branched_contradictions(h)
    if h.packed_length:
        yield from _packing_contradictions(h)
    if h.layer_postprocess_sequence != WIRINGS[h.layer_preprocess_sequence].postprocess:
        wirings = " or ".join(f"{pre}/{w.postprocess}" for pre, w in WIRINGS.items())
        yield (
            "layer_preprocess_sequence/layer_postprocess_sequence: received "
            f"{h.layer_preprocess_sequence}/{h.layer_postprocess_sequence}, "
            f"expected {wirings} (post-norm or pre-norm); set both."
        )
    if h.pos in SINUSOIDS and h.hidden_size % 2:
        yield (
            f"pos={h.pos} needs an even hidden_size: received "
            f"hidden_size={h.hidden_size}."
        )


def _schedule_contradictions(h: HParams) -> Iterator[str]:
    factors = h.learning_rate_factors
    if not set(factors) <= set(LEARNING_RATE_FACTORS) or len(set(factors)) < len(
        factors
    ):
        yield (
            f"learning_rate_schedule: received {h.learning_rate_schedule!r}, expected "
            f"each of {', '.join(LEARNING_RATE_FACTORS)} at most once, joined by *."
        )


def _head_contradictions(h: HParams, prefix: str, heads_name: str) -> Iterator[str]:
    """Yield a message for channels that cannot be divided among heads.

    Args:
        h: The hparams.
        prefix: Start of the names of the channels of keys and values.
        heads_name: Name of the number of heads.
    """
    heads = getattr(h, heads_name)
    for name in (f"{prefix}_key_channels", f"{prefix}_value_channels"):
        origin = name if getattr(h, name) else "hidden_size"
        width = getattr(h, origin)
        if width % heads:
            yield (
                f"{heads_name} must divide {origin}: received {heads_name}={heads}, "
                f"{origin}={width}."
            )


def _self_attention_contradictions(h: HParams) -> Iterator[str]:
    neighbourhood = h.attention_neighbourhood
    is_restricted = h.self_attention_type in ("restricted", "restricted_masked")
    if (is_restricted or neighbourhood) and neighbourhood % 2 == 0:
        yield (
            f"self_attention_type={h.self_attention_type} needs an odd "
            "attention_neighbourhood: received "
            f"attention_neighbourhood={neighbourhood}."
        )


def _packing_contradictions(h: HParams) -> Iterator[str]:
    if h.packed_length < h.max_length:
        yield (
            "packed_length must be at least max_length, or the longest pairs fit no "
            f"row: received packed_length={h.packed_length}, max_length={h.max_length}."
        )
    if h.packed_source_length > h.packed_length:
        yield (
            "packed_source_length must not exceed packed_length: received "
            f"packed_source_length={h.packed_source_length}, "
            f"packed_length={h.packed_length}."
        )
    if h.self_attention_type == "restricted":
        yield (
            f"packed_length={h.packed_length} needs a mask per query, which "
            "self_attention_type=restricted does not support: use restricted_masked, "
            "which computes the same function."
        )


def _branched_contradictions(h: HParams) -> Iterator[str]:
    if h.ffn_layer != "dense_relu_dense":
        yield (
            "branched_attention contains the feed-forward network: received "
            f"branched_attention={h.branched_attention}, ffn_layer={h.ffn_layer}, "
            "expected ffn_layer=dense_relu_dense."
        )
    if h.branch_top_k > h.num_heads:
        yield (
            "branch_top_k must not exceed num_heads: received "
            f"branch_top_k={h.branch_top_k}, num_heads={h.num_heads}."
        )


def ineffective(h: HParams) -> Iterator[tuple[str, str]]:
    """Yield the name of every setting that has no effect, and the reason."""
    factors = h.learning_rate_factors
    schedule = f"learning_rate_schedule={h.learning_rate_schedule} has no factor "
    if "constant" not in factors:
        yield "learning_rate_constant", schedule + "constant."
    if not {"linear_warmup", "rsqrt_decay"} & set(factors):
        yield "learning_rate_warmup_steps", schedule + "linear_warmup or rsqrt_decay."
    if "linear_decay" not in factors:
        yield "learning_rate_decay_steps", schedule + "linear_decay."
    has_network = h.ffn_layer == "dense_relu_dense"
    if not has_network:
        for name in ("ffn_activation", "relu_dropout"):
            yield name, f"ffn_layer={h.ffn_layer}."
    if not any(
        (
            h.layer_prepostprocess_dropout,
            h.attention_dropout,
            h.relu_dropout and has_network,
            h.symbol_dropout,
        )
    ):
        yield "rdrop_weight", "there is no dropout, so both passes are the same."
    if not h.rdrop_weight:
        yield "rdrop_after_steps", "rdrop_weight=0, so no update has two passes."
    if h.num_encoder_layers and h.num_decoder_layers:
        reason = (
            "num_encoder_layers and num_decoder_layers are both set; override those, "
            "or set one of them to 0."
        )
        yield "num_hidden_layers", reason
    if h.ffn_layer != "parameter_attention":
        for name in _names_with(h, "parameter_attention_"):
            yield name, f"ffn_layer={h.ffn_layer}."
    if h.branched_attention == "none":
        for name in _names_with(h, "branch_", "branched_in"):
            yield name, "branched_attention=none."
    elif not h.branch_learning_rate_constant:
        for name in ("branch_learning_rate_warmup_steps", "branch_frozen_after_steps"):
            yield name, "branch_learning_rate_constant=0."
    if not h.packed_length:
        yield "packed_source_length", "packed_length=0, so no rows are packed."
    if h.min_length_bucket >= h.max_length:
        reason = (
            f"min_length_bucket={h.min_length_bucket} is not below "
            f"max_length={h.max_length}, so there is one bucket."
        )
        yield "length_bucket_step", reason


def _names_with(h: HParams, *prefixes: str) -> list[str]:
    return [name for name in h.names() if name.startswith(prefixes)]
