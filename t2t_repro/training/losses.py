"""Label-smoothed cross-entropy of target tokens (paper section 5.4)."""

from __future__ import annotations

from collections.abc import Callable

from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID


def token_losses(
    targets: KerasTensor, logits: KerasTensor, label_smoothing: float
) -> tuple[KerasTensor, KerasTensor]:
    """Compute cross-entropy and negative log-likelihood of every target token.

    The smoothed distribution q is 1 - e for the target and e / (V - 1) for each other
    entry (tensor2tensor `common_layers.py: smoothing_cross_entropy`). With
    low = e / (V - 1)::

        -sum_v q_v log p_v = -(1 - e - low) log p_target - low sum_v log p_v
        sum_v log p_v = sum_v logit_v - V logsumexp(logits)

    so no `[batch, length, V]` array of probabilities is computed.
    Differs from tensor2tensor: the smallest reachable cross-entropy is not
    subtracted; it changes no gradient, and the value stays a cross-entropy.

    Args:
        targets: Token ids, int32 `[batch, length]`.
        logits: float32 `[batch, length, V]`.
        label_smoothing: e, the paper's epsilon_ls, from 0 to 1.

    Returns:
        Smoothed cross-entropy and negative log-likelihood in nats, both float32
        `[batch, length]`, zero at padding.
    """
    vocab_size = logits.shape[-1]
    real = ops.cast(ops.not_equal(targets, PAD_ID), logits.dtype)
    normalizer = ops.logsumexp(logits, axis=-1)
    nll = normalizer - _entries(logits, targets)
    low = label_smoothing / (vocab_size - 1)
    sum_of_log_probs = ops.sum(logits, axis=-1) - vocab_size * normalizer
    smoothed = (1.0 - label_smoothing - low) * nll - low * sum_of_log_probs
    return smoothed * real, nll * real


def _entries(values: KerasTensor, places: KerasTensor) -> KerasTensor:
    """Take one entry of each row: `values[..., place]`.

    The gradient of a gather is a scatter into an array of zeros of the shape of
    `values`. Here it is a comparison, which XLA fuses with the rest of the gradient, so
    that array is never in memory (`docs/performance.md`, "Where the time goes").

    Args:
        values: `[batch, length, size]`.
        places: int32 `[batch, length]`, from 0 to size - 1.

    Returns:
        `[batch, length]`.
    """

    @ops.custom_gradient
    def take(values: KerasTensor) -> tuple[KerasTensor, Callable[..., KerasTensor]]:
        def gradient(upstream: KerasTensor) -> KerasTensor:
            taken = ops.equal(ops.arange(values.shape[-1]), places[..., None])
            return ops.where(taken, upstream[..., None], 0.0)

        return ops.take_along_axis(values, places[..., None], axis=-1)[..., 0], gradient

    return take(values)
