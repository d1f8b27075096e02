"""Detect that training has diverged, and say what to do."""

from __future__ import annotations

import keras
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.training.checkpoint_paths import step_of


class DivergedError(UserError):
    """Training has diverged.

    Args:
        symptom: The value that is not finite, as a sentence without its full stop.
        step: Number of completed updates.
        checkpoint: Path of the newest checkpoint of the run, whose weights are finite;
            None if the run diverged before its first checkpoint.

    Attributes:
        checkpoint: See above.
    """

    def __init__(self, symptom: str, step: int, checkpoint: str | None) -> None:
        self.checkpoint = checkpoint
        kept = (
            f"the checkpoint of step {step_of(checkpoint)} is kept"
            if checkpoint
            else "no checkpoint had been saved yet"
        )
        super().__init__(
            f"{symptom} at step {step}: training has diverged; {kept}.\nLower "
            "learning_rate_constant, raise learning_rate_warmup_steps, or set "
            "clip_grad_norm."
        )


def non_finite_weights(model: keras.Model) -> str | None:
    """Return the path of a trainable variable with an infinity or a NaN, if any."""
    for variable in model.trainable_variables:
        if not bool(tf.reduce_all(tf.math.is_finite(variable.value))):
            return variable.path
    return None
