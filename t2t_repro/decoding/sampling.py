"""Draw tokens at random instead of taking the best one.

tensor2tensor: `sampling_method`, `sampling_temp` and `sampling_keep_top_k` of
`layers/common_layers.py: sample_with_temperature`; top-p: Holtzman et al. 2020
(arXiv:1904.09751).
"""

from __future__ import annotations

import dataclasses

from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID
from t2t_repro.decoding.vocabulary import MINUS_INFINITY, log_normalizer, top_k

ALL_TOKENS = -1  # of `top_k`, as in tensor2tensor


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Distribution that tokens are drawn from.

    The three are applied in this order, as in Hugging Face's `generate`.

    Attributes:
        temperature: Divisor of the logits.
        top_k: Number of most probable tokens to draw from; -1 means all.
        top_p: Only the fewest most probable tokens whose probabilities sum to at least
            this are drawn; 1 means all.
    """

    temperature: float = 1.0
    top_k: int = ALL_TOKENS
    top_p: float = 1.0


def sample(
    logits: KerasTensor,
    uniform: KerasTensor,
    sampling: Sampling,
    forbidden: KerasTensor | None = None,
) -> tuple[KerasTensor, KerasTensor]:
    """Draw a token for each row, by inversion of the cumulative distribution.

    Args:
        logits: float32 `[rows, vocab_size]`.
        uniform: A number in [0, 1) per row, float64 `[rows]`.
        sampling: Distribution to draw from.
        forbidden: Boolean, True = never draw, broadcastable to the logits. PAD is never
            drawn either.

    Returns:
        Tokens, int32 `[rows]`, and their log-probabilities in the model's distribution,
        float32 `[rows]`, which `sampling` and `forbidden` do not change;
        `MINUS_INFINITY` if all tokens are forbidden.
    """
    allowed = _without(logits, forbidden)
    values, tokens = _candidates(allowed, sampling)
    cumulative = ops.cumsum(_weights(values, sampling), axis=-1)
    wanted = uniform[:, None] * cumulative[:, -1:]
    place = ops.sum(ops.cast(cumulative <= wanted, "int32"), axis=-1, keepdims=True)
    token = place if tokens is None else ops.take_along_axis(tokens, place, axis=-1)
    log_normalizers = log_normalizer(logits, ops.max(logits, axis=-1))
    chosen = ops.take_along_axis(allowed, token, axis=-1)[:, 0]
    return token[:, 0], ops.maximum(chosen - log_normalizers, MINUS_INFINITY)


def _weights(values: KerasTensor, sampling: Sampling) -> KerasTensor:
    """Return numbers in proportion to the probabilities, float64 `[rows, n]`.

    In float32, rare tokens would be lost in cumulative sums.
    """
    values = ops.cast(values, "float64") / sampling.temperature
    weights = ops.exp(values - ops.max(values, axis=-1, keepdims=True))
    if sampling.top_p == 1.0:
        return weights
    before = ops.cumsum(weights, axis=-1) - weights
    enough = sampling.top_p * ops.sum(weights, axis=-1, keepdims=True)
    return ops.where(before < enough, weights, 0.0)


def _without(logits: KerasTensor, forbidden: KerasTensor | None) -> KerasTensor:
    """Lower the logits of PAD and of forbidden tokens."""
    is_forbidden = (ops.arange(logits.shape[-1]) == PAD_ID)[None, :]
    if forbidden is not None:
        is_forbidden = ops.logical_or(is_forbidden, forbidden)
    return ops.where(is_forbidden, MINUS_INFINITY, logits)


def _candidates(
    logits: KerasTensor, sampling: Sampling
) -> tuple[KerasTensor, KerasTensor | None]:
    """Return the logits to draw from, and their tokens; None for the whole vocabulary.

    They are in descending order if there is a limit.
    """
    vocab_size = logits.shape[-1]
    if sampling.top_k == ALL_TOKENS and sampling.top_p == 1.0:
        return logits, None
    count = vocab_size if sampling.top_k == ALL_TOKENS else sampling.top_k
    return top_k(logits, min(count, vocab_size))
