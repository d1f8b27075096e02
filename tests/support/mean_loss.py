"""The training loss as Keras's `compile` takes it."""

from __future__ import annotations

from collections.abc import Callable

from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID
from t2t_repro.training.losses import token_losses


def mean_loss(
    label_smoothing: float,
) -> Callable[[KerasTensor, KerasTensor], KerasTensor]:
    """Make a function that returns the smoothed loss, a mean over real tokens."""

    def loss(targets: KerasTensor, logits: KerasTensor) -> KerasTensor:
        targets = ops.cast(targets, "int32")
        smoothed, _ = token_losses(targets, logits, label_smoothing)
        tokens = ops.count_nonzero(ops.not_equal(targets, PAD_ID))
        return ops.sum(smoothed) / ops.cast(tokens, smoothed.dtype)

    return loss
