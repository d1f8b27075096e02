"""R-Drop: two passes with different dropout, which should agree.

Source: Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks". It is in
neither of the papers of this project; it helps where little data would be learned by
heart.
"""

from __future__ import annotations

from collections.abc import Mapping

from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID
from t2t_repro.training.losses import token_losses


def two_copies(batch: Mapping[str, KerasTensor]) -> dict[str, KerasTensor]:
    """Put a second copy of every row after the rows of a batch (section 2.3).

    Args:
        batch: `[rows, length]` per feature.

    Returns:
        `[2 rows, length]` per feature. Dropout treats the copies differently.
    """
    return {name: ops.concatenate([ids, ids]) for name, ids in batch.items()}


def rdrop_losses(
    targets: KerasTensor,
    logits: KerasTensor,
    label_smoothing: float,
    weight: float,
) -> tuple[KerasTensor, KerasTensor]:
    """Compute the loss of two passes and the mean of their negative log-likelihoods.

    Equations 1 to 3, divided by two: with c and c' for the smoothed cross-entropy of
    the passes, p and p' for their distributions, and alpha for the weight::

        (c + c') / 2 + alpha (KL(p || p') + KL(p' || p)) / 4

    so that the loss stays the one of a single pass if the passes agree.

    Args:
        targets: Token ids, int32 `[rows, length]`.
        logits: Logits of the `two_copies`, float32 `[2 rows, length, V]`.
        label_smoothing: See `token_losses`.
        weight: The paper's alpha.

    Returns:
        Loss and negative log-likelihood in nats, both float32 `[rows, length]`, zero at
        padding.
    """
    first, second = ops.split(logits, 2)
    smoothed, nll = token_losses(targets, first, label_smoothing)
    other_smoothed, other_nll = token_losses(targets, second, label_smoothing)
    real = ops.cast(ops.not_equal(targets, PAD_ID), logits.dtype)
    divergence = _symmetric_divergence(first, second) * real
    loss = (smoothed + other_smoothed) / 2.0 + weight / 4.0 * divergence
    return loss, (nll + other_nll) / 2.0


def _symmetric_divergence(logits: KerasTensor, others: KerasTensor) -> KerasTensor:
    """Return KL(p || p') + KL(p' || p) of the last axis.

    With z for the logits, this is sum_v (p_v - p'_v) (z_v - z'_v): log p_v is z_v less
    a term that does not depend on v, and p - p' sums to zero.
    """
    difference = ops.softmax(logits, axis=-1) - ops.softmax(others, axis=-1)
    return ops.sum(difference * (logits - others), axis=-1)
