"""Recover from bad updates: skip them, return to a checkpoint, or give up.

Chowdhery et al. 2022 (PaLM), section 5.1, recovered from spikes of the loss in the same
way: they restarted from an earlier checkpoint and left out the batches seen since then.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import step_of
from t2t_repro.training.optimizer import MIN_LOSS_SCALE

if TYPE_CHECKING:
    from t2t_repro.training.training_state import TrainingCheckpoints

logger = logging.getLogger(__name__)


class DivergedError(UserError):
    """Error raised when training has diverged.

    Args:
        symptom: The value that is not finite, as a sentence without its full stop.
        step: Number of completed updates.
        checkpoint: Path of the newest checkpoint of the run, whose weights are finite;
            None if the run diverged before its first checkpoint.
        rollbacks: Number of returns to a checkpoint that did not help.

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
        """Return the same error after returns to a checkpoint that did not help."""
        return DivergedError(self.symptom, self.step, self.checkpoint, rollbacks)


def non_finite_weights(model: keras.Model) -> str | None:
    """Return the path of a trainable variable with an infinity or a NaN, if any."""
    for variable in model.trainable_variables:
        if not bool(tf.reduce_all(tf.math.is_finite(variable.value))):
            return variable.path
    return None


# A running mean over the last 100 updates or so. There is no limit before that many.
DECAY = 0.99
WARM_UP = 100


class UpdateGuard:
    """Guard that skips updates which would damage the weights, and counts them.

    An update is skipped if its loss or its gradient norm is not finite, or if one of
    them exceeds `spike_factor` times its mean over earlier updates.

    With a loss-scaling optimizer, a norm that is not finite is an overflow, which says
    nothing about the data: that optimizer skips the update itself and then lowers its
    scale. An overflow is neither a skipped update nor one that was made, so it does not
    end a streak of skipped updates. If the scale is below `MIN_LOSS_SCALE`, such an
    update counts as bad and is skipped.

    The state is saved in checkpoints, so a resumed run makes the same decisions.

    Args:
        spike_factor: Largest accepted multiple of the mean; 0 = any finite value.
        warm_up: Number of accepted updates before a multiple of the mean is a limit.

    Attributes:
        variables: The state by name, for checkpoints.
        in_row: int64 variable, number of updates skipped since the last one that was
            made.
        total: int64 variable, number of skipped updates.
        rollbacks: int64 variable, number of returns to a checkpoint since the last
            regular checkpoint.
    """

    def __init__(self, spike_factor: float = 0.0, warm_up: int = WARM_UP) -> None:
        self.spike_factor = spike_factor
        self.warm_up = warm_up
        self.in_row, self.total, self.rollbacks, self._accepted = (
            tf.Variable(0, dtype=tf.int64) for _ in range(4)
        )
        # Sums with weights that fall by `DECAY`, of loss and gradient norm.
        self._sums = tf.Variable([0.0, 0.0])
        self.variables = {
            "in_row": self.in_row,
            "total": self.total,
            "rollbacks": self.rollbacks,
            "accepted": self._accepted,
            "sums": self._sums,
        }

    def means(self) -> tf.Tensor:
        """Return the means of loss and gradient norm, float32 `[2]`; 0 at first."""
        weight = 1.0 - tf.pow(DECAY, tf.cast(self._accepted, tf.float32))
        return tf.math.divide_no_nan((1.0 - DECAY) * self._sums, weight)

    def limits(self) -> tf.Tensor:
        """Return the largest accepted loss and gradient norm, float32 `[2]`."""
        if not self.spike_factor:
            return tf.fill([2], tf.float32.max)
        is_warm = self._accepted >= self.warm_up
        return tf.where(is_warm, self.spike_factor * self.means(), tf.float32.max)

    def count(self, results: dict[str, tf.Tensor]) -> None:
        """Add an update to the counts and means.

        Args:
            results: Metrics of the update: "loss", "gradient_norm" and "skipped".
        """
        skipped = results["skipped"] > 0.0
        values = tf.stack([results["loss"], results["gradient_norm"]])
        # An update with an infinite norm has overflowed: the optimizer did not make it.
        taken = ~skipped & tf.reduce_all(tf.math.is_finite(values))
        self._sums.assign(tf.where(taken, DECAY * self._sums + values, self._sums))
        self._accepted.assign_add(tf.cast(taken, tf.int64))
        one = tf.cast(skipped, tf.int64)
        self.total.assign_add(one)
        self.in_row.assign(tf.where(taken, tf.zeros_like(one), self.in_row + one))

    def reason(self, loss: float, gradient_norm: float) -> str:
        """Return why an update with these values was skipped, as a phrase."""
        (mean_loss, mean_norm) = self.means().numpy()
        found = f"loss {loss:.4g}, gradient norm {gradient_norm:.4g}"
        if not self.spike_factor or self._accepted.numpy() < self.warm_up:
            return found
        return f"{found}; their means are {mean_loss:.4g} and {mean_norm:.4g}"


def is_acceptable(
    limits: tf.Tensor,
    loss: tf.Tensor,
    gradient_norm: tf.Tensor,
    loss_scale: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return whether an update should be made, a boolean scalar.

    Args:
        limits: See `UpdateGuard.limits`.
        loss: Loss of the global batch, float32 scalar.
        gradient_norm: Norm of the global gradient, float32 scalar.
        loss_scale: Factor of the loss, if the optimizer itself skips an infinite
            gradient and lowers the factor.
    """
    # A NaN is not below any limit, and an infinity is above the largest float.
    norm_is_fine = gradient_norm <= limits[1]
    if loss_scale is not None:
        overflowed = ~tf.math.is_finite(gradient_norm)
        norm_is_fine |= overflowed & (loss_scale >= MIN_LOSS_SCALE)
    return (loss <= limits[0]) & norm_is_fine


class Recovery:
    """Supervisor of a training run, which can take it back to a checkpoint.

    Every decision depends on the steps alone, and its state is in the checkpoints, so
    a killed run that resumes decides in the same way. To this end it returns to regular
    checkpoints. It returns to one that a signal left only if there is no regular one.

    Args:
        guard: The guard of the training step.
        checkpoints: The checkpoints of the run, which save the guard.
        settings: Settings of the training run: `max_skipped_updates` and
            `max_rollbacks`.
    """

    def __init__(
        self,
        guard: UpdateGuard,
        checkpoints: TrainingCheckpoints,
        settings: TrainSettings,
    ) -> None:
        self.guard = guard
        self._checkpoints = checkpoints
        self._settings = settings

    def skipped(self, results: dict[str, tf.Tensor]) -> str | None:
        """Return why an update was skipped, or None if it was made."""
        if not float(results["skipped"]):
            return None
        loss, norm = float(results["loss"]), float(results["gradient_norm"])
        return f"skipped the update: {self.guard.reason(loss, norm)}"

    def symptom(self) -> str | None:
        """Return the symptom of too many updates skipped in a row, or None."""
        in_row = int(self.guard.in_row.numpy())
        if in_row < self._settings.max_skipped_updates:
            return None
        return f"{in_row} update(s) in a row had to be skipped"

    def before_save(self, step: int) -> None:
        """Forget earlier returns if a regular checkpoint is about to be saved."""
        in_row = int(self.guard.in_row.numpy())
        if self._checkpoints.is_regular(step) and not in_row:
            self.guard.rollbacks.assign(0)

    def go_back(self, error: DivergedError) -> int:
        """Restore the last good checkpoint, and keep the position in the data.

        Args:
            error: Reason for going back.

        Returns:
            The step of the checkpoint.

        Raises:
            DivergedError: If there is no such checkpoint, or training went back too
                often.
        """
        total, rollbacks = (
            int(count.numpy()) for count in (self.guard.total, self.guard.rollbacks)
        )
        last_good = error.step - int(self.guard.in_row.numpy())
        if rollbacks >= self._settings.max_rollbacks:
            raise error.after(rollbacks)
        path = self._checkpoints.roll_back(last_good)
        if path is None:
            raise error
        self.guard.total.assign(total)
        self.guard.rollbacks.assign(rollbacks + 1)
        self.guard.in_row.assign(0)
        logger.warning(
            "%s at step %d: going back to the checkpoint of step %d (return %d of at "
            "most %d), and past the data seen since then",
            error.symptom,
            error.step,
            step_of(path),
            rollbacks + 1,
            self._settings.max_rollbacks,
        )
        return step_of(path)

    def report(self) -> None:
        """Log how many updates were skipped, if any."""
        total = int(self.guard.total.numpy())
        if total:
            logger.warning("skipped %d update(s) since the beginning of the run", total)
