"""Label-smoothed cross-entropy (paper section 5.4), and R-Drop (Liang et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
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


@keras.saving.register_keras_serializable(package="t2t_repro")
class SmoothedCrossentropy(keras.losses.Loss):
    """Label-smoothed cross-entropy, a mean over real tokens, for `compile`.

    It is the loss of `t2t train`; see `token_losses`.

    Args:
        label_smoothing: The paper's epsilon_ls, from 0 to 1.
        reduction: Reduction of `keras.losses.Loss`.
        name: Name of the loss.
        **kwargs: Other arguments of `keras.losses.Loss`.

    Call arguments:
        y_true: Token ids, `[batch, length]`, padded with 0.
        y_pred: Logits, `[batch, length, vocab_size]`.
        sample_weight: Weight of each pair or token, `[batch]` or `[batch, length]`.

    Returns:
        float32 scalar, in nats.

    Example:
    ```python
    loss = SmoothedCrossentropy(label_smoothing=0.1)
    targets = np.array([[3, 5, 1, 0], [4, 1, 0, 0]])
    print(loss(targets, keras.random.normal((2, 4, 6))))
    ```
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        reduction: str = "mean_with_sample_weight",
        name: str = "smoothed_crossentropy",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)
        self.label_smoothing = label_smoothing

    def __call__(
        self,
        y_true: KerasTensor,
        y_pred: KerasTensor,
        sample_weight: KerasTensor | None = None,
    ) -> KerasTensor:
        weight = _real_tokens(y_true, sample_weight)
        return super().__call__(y_true, y_pred, sample_weight=weight)

    def call(self, y_true: KerasTensor, y_pred: KerasTensor) -> KerasTensor:
        targets = ops.cast(y_true, "int32")
        return token_losses(targets, y_pred, self.label_smoothing)[0]

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable(package="t2t_repro")
class TokenAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """Share of real tokens that have the largest logit, for `compile`.

    Args:
        name: Name of the metric.
        **kwargs: Other arguments of `keras.metrics.Metric`.

    Example:
    ```python
    accuracy = TokenAccuracy()
    accuracy.update_state(np.array([[1, 0]]), np.array([[[0.0, 2.0], [0.0, 2.0]]]))
    assert accuracy.result() == 1.0  # the second token is padding
    ```
    """

    def __init__(self, name: str = "token_accuracy", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def update_state(
        self,
        y_true: KerasTensor,
        y_pred: KerasTensor,
        sample_weight: KerasTensor | None = None,
    ) -> None:
        weight = _real_tokens(y_true, sample_weight)
        super().update_state(y_true, y_pred, sample_weight=weight)


def _real_tokens(
    targets: KerasTensor, sample_weight: KerasTensor | None
) -> KerasTensor:
    """Return the weights of tokens, zero at padding, float32 `[batch, length]`."""
    real = ops.cast(ops.not_equal(targets, PAD_ID), "float32")
    if sample_weight is None:
        return real
    sample_weight = ops.cast(sample_weight, "float32")
    if len(sample_weight.shape) < len(real.shape):
        sample_weight = sample_weight[..., None]
    return real * sample_weight


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


def two_copies(batch: Mapping[str, KerasTensor]) -> dict[str, KerasTensor]:
    """Put a second copy of every row after the rows of a batch (R-Drop, section 2.3).

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

    Equations 1 to 3 of R-Drop, divided by two: with c and c' for the smoothed
    cross-entropy of the passes, p and p' for their distributions, and alpha for the
    weight::

        (c + c') / 2 + alpha (KL(p || p') + KL(p' || p)) / 4

    so that the loss stays the one of a single pass if the passes agree.

    Args:
        targets: Token ids, int32 `[rows, length]`.
        logits: Logits of the `two_copies`, float32 `[2 rows, length, V]`.
        label_smoothing: See `token_losses`.
        weight: R-Drop's alpha.

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
