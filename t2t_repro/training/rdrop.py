"""R-Drop: two passes with different dropout, which should agree.

Source: Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks". It is in
neither of the papers of this project; it helps where little data would be learned by
heart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    both = ops.concatenate([targets, targets])
    smoothed, nll = (
        sum(ops.split(values, 2)) / 2.0
        for values in token_losses(both, logits, label_smoothing)
    )
    real = ops.cast(ops.not_equal(targets, PAD_ID), logits.dtype)
    return smoothed + weight / 4.0 * _symmetric_divergences(logits) * real, nll


def _symmetric_divergences(logits: KerasTensor) -> KerasTensor:
    """Compute KL(p || p') + KL(p' || p) at every position.

    With z and z' for the logits and g = z - z', this is sum_v (p_v - p'_v) g_v: log p_v
    is z_v less a term that does not depend on v, and p - p' sums to zero. The gradient
    with respect to z is (p - p') + p (g - sum_v p_v g_v). Automatic differentiation
    needs more memory: 786 MB instead of 654 MB per step of transformer_tiny with
    dropout 0.1 (`benchmarks/training_memory.py --xla`).

    Args:
        logits: Logits of the two passes, float32 `[2 rows, length, V]`.

    Returns:
        Divergence in nats, float32 `[rows, length]`.
    """

    @ops.custom_gradient
    def divergences(
        logits: KerasTensor,
    ) -> tuple[KerasTensor, Callable[..., KerasTensor]]:
        first, second = ops.split(logits, 2)
        gap = first - second
        p, q = _distribution(first), _distribution(second)
        gap_by_p, gap_by_q = _total(p * gap), _total(q * gap)

        def gradient(upstream: KerasTensor) -> KerasTensor:
            to_first = p - q + p * (gap - gap_by_p)
            to_second = q - p - q * (gap - gap_by_q)
            upstream = upstream[..., None]
            return ops.concatenate([upstream * to_first, upstream * to_second])

        return (gap_by_p - gap_by_q)[..., 0], gradient

    return divergences(logits)


def _distribution(logits: KerasTensor) -> KerasTensor:
    """Compute the softmax.

    With XLA on a CPU, `ops.softmax` takes 65 MB more in the step described above.
    """
    return ops.exp(logits - ops.logsumexp(logits, axis=-1, keepdims=True))


def _total(values: KerasTensor) -> KerasTensor:
    return ops.sum(values, axis=-1, keepdims=True)
