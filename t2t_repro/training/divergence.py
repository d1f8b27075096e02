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
        rollbacks: Number of times that training went back to a checkpoint in vain.

    Attributes:
        symptom: See above.
        step: See above.
        checkpoint: See above.
    """

    def __init__(
        self, symptom: str, step: int, checkpoint: str | None, rollbacks: int = 0
    ) -> None:
        self.symptom, self.step, self.checkpoint = symptom, step, checkpoint
        kept = (
            f"the checkpoint of step {step_of(checkpoint)} is kept"
            if checkpoint
            else "no checkpoint had been saved yet"
        )
        tried = (
            f", and going back to a checkpoint {rollbacks} time(s) did not help"
            if rollbacks
            else ""
        )
        super().__init__(
            f"{symptom} at step {step}: training has diverged{tried}; {kept}.\nLower "
            "learning_rate_constant, raise learning_rate_warmup_steps, or set "
            "clip_grad_norm."
        )

    def after(self, rollbacks: int) -> DivergedError:
        """Return the same error after going back to a checkpoint in vain."""
        return DivergedError(self.symptom, self.step, self.checkpoint, rollbacks)


def non_finite_weights(model: keras.Model) -> str | None:
    """Return the path of a trainable variable with an infinity or a NaN, if any."""
    for variable in model.trainable_variables:
        if not bool(tf.reduce_all(tf.math.is_finite(variable.value))):
            return variable.path
    return None
