"""Recover from bad updates: skip them, return to a checkpoint, or give up.

Chowdhery et al. 2022 (PaLM), section 5.1, recovered from spikes of the loss in the same
way: they restarted from an earlier checkpoint and left out the batches seen since then.
"""

from __future__ import annotations

import dataclasses
import logging

import tensorflow as tf

from t2t_repro.training.checkpoint_paths import step_of
from t2t_repro.training.divergence import DivergedError
from t2t_repro.training.training_checkpoints import TrainingCheckpoints
from t2t_repro.training.update_guard import UpdateGuard

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class RecoveryLimits:
    """How often to skip, and how often to go back.

    Attributes:
        max_skips: Number of updates skipped in a row before training goes back.
        max_rollbacks: Number of returns, without a new regular checkpoint in between,
            before training gives up.
    """

    max_skips: int
    max_rollbacks: int


class Recovery:
    """Watch over a training run, which can take it back to a checkpoint.

    Every decision depends on the steps alone, and its state is in the checkpoints, so
    a killed run that resumes decides in the same way. To this end it returns to regular
    checkpoints. It returns to one that a signal left only if there is no regular one.

    Args:
        guard: The guard of the training step.
        checkpoints: The checkpoints of the run, which save the guard.
        limits: See `RecoveryLimits`.
    """

    def __init__(
        self,
        guard: UpdateGuard,
        checkpoints: TrainingCheckpoints,
        limits: RecoveryLimits,
    ) -> None:
        self.guard = guard
        self._checkpoints = checkpoints
        self._limits = limits

    def skipped(self, results: dict[str, tf.Tensor]) -> str | None:
        """Return why an update was skipped, or None if it was made."""
        if not float(results["skipped"]):
            return None
        loss, norm = float(results["loss"]), float(results["gradient_norm"])
        return f"skipped the update: {self.guard.reason(loss, norm)}"

    def symptom(self) -> str | None:
        """Return that too many updates were skipped in a row, or None."""
        in_row = int(self.guard.in_row.numpy())
        if in_row < self._limits.max_skips:
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
        if rollbacks >= self._limits.max_rollbacks:
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
            self._limits.max_rollbacks,
        )
        return step_of(path)

    def report(self) -> None:
        """Log how many updates were skipped, if any."""
        total = int(self.guard.total.numpy())
        if total:
            logger.warning("skipped %d update(s) since the beginning of the run", total)
