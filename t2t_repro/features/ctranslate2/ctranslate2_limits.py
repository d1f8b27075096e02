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
    scale, and a feed-forward network of two matrices with a function between them.
    `Comparison` compares every converted model with the original.

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


def _inexpressible(model: str, h: HParams) -> Iterator[str]:
    if model != MODEL:
        yield f"model={model} is not {MODEL}, the only one whose weights it can read"
    for name, (accepted, reason) in ACCEPTED.items():
        value = getattr(h, name)
        if value not in accepted:
            yield f"{name}={value} {reason}"
    yield from _inexpressible_attention(h)


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
