"""Say which models CTranslate2 can compute, and how exactly it must."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from t2t_repro.constants import SELF_ATTENTIONS
from t2t_repro.errors import UsageError, UserError
from t2t_repro.settings.hparams import HParams

MODEL = "transformer"


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """Limits on the differences between CTranslate2 and the trained model.

    Attributes:
        mean: Mean of the absolute differences of tokens' log-probabilities, in nats.
        largest: Largest of these differences, in nats.
        equal: Smallest share of sentences with the same greedy translation.
    """

    mean: float
    largest: float
    equal: float


# Measured on a model of 3 + 3 layers, 100 sentences (docs/serving.md): mean
# 1e-6 for float32, 3e-3 for bfloat16, 1e-2 for int8. Rounding of float32 changes a
# translation only where two tokens are equally probable.
_EXACT = Tolerance(mean=1e-5, largest=2e-4, equal=0.98)


_HALF = Tolerance(mean=0.02, largest=0.5, equal=0.9)


_EIGHT_BITS = Tolerance(mean=0.05, largest=2.0, equal=0.75)


# Format of the weights -> largest accepted differences. A CPU without 16-bit arithmetic
# computes with float32 where a name has float16 or bfloat16.
QUANTIZATIONS = {
    "float32": _EXACT,
    "bfloat16": _HALF,
    "float16": _HALF,
    "int16": _HALF,
    "int8": _EIGHT_BITS,
    "int8_float32": _EIGHT_BITS,
    "int8_bfloat16": _EIGHT_BITS,
    "int8_float16": _EIGHT_BITS,
}


def check_quantization(quantization: str) -> None:
    """Refuse an unknown format of the weights.

    Raises:
        UsageError: If it is unknown.
    """
    if quantization not in QUANTIZATIONS:
        raise UsageError(
            f"received quantization={quantization!r}, expected one of "
            f"{', '.join(QUANTIZATIONS)}."
        )


def check_expressible(model: str, hparams: HParams) -> None:
    """Refuse a model that CTranslate2 cannot compute.

    CTranslate2's Transformer has dot-product attention to all positions, with any
    scale, and a feed-forward network of two matrices with a function between them. A
    new hparam, which is neither in `ACCEPTED` nor `EXPRESSIBLE`, must have its default.

    Args:
        model: Name of the model in the registry.
        hparams: Its hparams.

    Raises:
        UserError: If it has parts that CTranslate2 lacks; the message names each one.
    """
    reasons = [*_inexpressible(model, hparams)]
    if reasons:
        raise UserError(
            f"CTranslate2 cannot compute this model: {'; '.join(reasons)}.\n"
            "Export it as a SavedModel, or translate with this package's own engine."
        )


# hparam -> values that CTranslate2 can compute, and what any other value does
ACCEPTED: dict[str, tuple[tuple[object, ...], str]] = {
    "branched_attention": (
        ("none",),
        "(the Weighted Transformer) sums weighted branches with a network in each",
    ),
    "ffn_layer": (
        ("dense_relu_dense",),
        "attends to parameters instead of applying two matrices",
    ),
    "word_positions": ((False,), "also encodes positions counted in words"),
    "depth_positions": ((False,), "also encodes the number of open brackets"),
    "attention_compatibility": (
        ("scaled_dot_product", "dot_product"),
        "adds queries and keys instead of multiplying them",
    ),
}


# hparams whose every value CTranslate2 can compute
_COMPUTED = {
    "activation_dtype",
    "attention_bias",
    "attention_key_channels",
    "attention_value_channels",
    "decoder_start",
    "encoder_input_bias",
    "ffn_activation",
    "filter_size",
    "hidden_size",
    "layer_postprocess_sequence",
    "layer_preprocess_sequence",
    "logit_bias",
    "max_length",
    "norm_epsilon",
    "num_decoder_layers",
    "num_encoder_layers",
    "num_heads",
    "num_hidden_layers",
    "pos",
    "shared_embedding_and_softmax_weights",
}
# hparams of parts that `ACCEPTED` already excludes
_OF_EXCLUDED_PARTS = {
    "attention_neighbourhood",
    "branch_gain",
    "branch_merged",
    "branch_normalization",
    "branch_residual",
    "branch_top_k",
    "branch_weights_init",
    "branched_in_decoder",
    "parameter_attention_heads",
    "parameter_attention_key_channels",
    "parameter_attention_value_channels",
}
# hparams that a trained model no longer needs
_OF_TRAINING = {
    "attention_dropout",
    "batch_size",
    "branch_frozen_after_steps",
    "branch_learning_rate_constant",
    "branch_learning_rate_warmup_steps",
    "clip_grad_norm",
    "ema_decay",
    "label_smoothing",
    "layer_prepostprocess_dropout",
    "learning_rate_constant",
    "learning_rate_decay_steps",
    "learning_rate_first_step",
    "learning_rate_schedule",
    "learning_rate_warmup_steps",
    "length_bucket_step",
    "min_length_bucket",
    "optimizer_adam_beta1",
    "optimizer_adam_beta2",
    "optimizer_adam_epsilon",
    "packed_length",
    "packed_source_length",
    "rdrop_after_steps",
    "rdrop_weight",
    "relu_dropout",
    "symbol_dropout",
    "update_tokens",
}
EXPRESSIBLE = frozenset(_COMPUTED | _OF_EXCLUDED_PARTS | _OF_TRAINING)


def _inexpressible(model: str, h: HParams) -> Iterator[str]:
    if model != MODEL:
        yield f"model={model} is not {MODEL}, the only one whose weights it can read"
    for name, value in h.values().items():
        if name in ACCEPTED:
            accepted, reason = ACCEPTED[name]
            if value not in accepted:
                yield f"{name}={value} {reason}"
        elif name == "self_attention_type":
            yield from _inexpressible_attention(h)
        elif name not in EXPRESSIBLE and value != h.about(name).default:
            yield f"{name}={value} is not the default, {h.about(name).default}"


def _inexpressible_attention(h: HParams) -> Iterator[str]:
    if h.self_attention_type not in SELF_ATTENTIONS:
        yield (
            f"self_attention_type={h.self_attention_type} is the attention of a user's "
            "package"
        )
    elif h.self_attention_type != "dot_product":
        yield (
            f"self_attention_type={h.self_attention_type} attends to a neighbourhood "
            f"of {h.attention_neighbourhood} positions instead of all"
        )
