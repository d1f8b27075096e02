"""Save and resume the state of a training run."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.files import (
    atomic_folder,
    atomic_write,
    current_folder,
    recover_folder,
)
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import (
    BEST_FOLDER,
    CHECKPOINT_NAME,
    STATE_FILE,
    all_checkpoints,
    step_of,
)
from t2t_repro.training.checkpoints import (
    DamagedCheckpointError,
    Variables,
    checkpoint_files,
    model_variables,
    remove_checkpoint,
    remove_partial_checkpoints,
    restore,
    variables_by_path,
    write_checkpoint,
)

if TYPE_CHECKING:
    from t2t_repro.training.recovery import UpdateGuard

logger = logging.getLogger(__name__)


# Parts that checkpoints of earlier versions or of other settings lack.
_ADDED_LATER = ("metrics", "guard")


def random_states(model: keras.Model) -> dict[str, tf.Variable]:
    """Return the states of the dropout generators by number.

    Their names differ between processes.
    """
    weights = {id(variable) for variable in model.weights}
    states = [v.value for v in model.variables if id(v) not in weights]
    return {str(number): state for number, state in enumerate(states)}


class TrainingCheckpoints:
    """The checkpoints of a run: model, optimizer, dropout, and position in the data.

    Args:
        settings: Settings of the training run: its folder, how many checkpoints to
            keep, and the steps between two regular ones; 0 = they are saved by time, so
            all are regular.
        model: The model.
        optimizer: Its optimizer, built.
        guard: The guard of the training step, if it has one.

    Attributes:
        epoch: int64 variable, number of complete passes over the data.
        batches: int64 variable, number of completed global batches of this epoch.
        window: String variable, the state of a `MetricsWindow`.
    """

    def __init__(
        self,
        settings: TrainSettings,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        guard: UpdateGuard | None = None,
    ) -> None:
        self.output_dir = Path(settings.output_dir)
        self._settings = settings
        self._stopped_at: str | None = None
        self.epoch = tf.Variable(0, dtype=tf.int64, name="epoch")
        self.batches = tf.Variable(0, dtype=tf.int64, name="batches")
        self.window = tf.Variable("", dtype=tf.string, name="window")
        self._variables: Variables = {
            **model_variables(model),
            "optimizer": variables_by_path(optimizer.variables),
            "random": random_states(model),
            "data": {"epoch": self.epoch, "batches": self.batches},
            "metrics": {"window": self.window},
            "guard": {} if guard is None else guard.variables,
        }
        self._model = model_variables(model)

    @property
    def variables(self) -> list[tf.Variable]:
        """All variables in a checkpoint."""
        return [v for named in self._variables.values() for v in named.values()]

    def save(self, step: int) -> str:
        """Write the checkpoint of a step, remove the oldest, and return its path.

        Differs from `tf.train.CheckpointManager`: every checkpoint whose files exist
        counts, as in `find_checkpoint`. The manager relies on another file, and starts
        anew if it is lost or the clock has been set back.
        """
        path = write_checkpoint(self._variables, self.output_dir, step)
        stopped_at, self._stopped_at = self._stopped_at, None
        if stopped_at != path and stopped_at in all_checkpoints(self.output_dir):
            # An uninterrupted run would not have it, and would not average it.
            remove_checkpoint(stopped_at)
        self._tidy(step)
        return path

    def _tidy(self, step: int) -> None:
        """Remove the oldest checkpoints, and name the newest for TensorFlow."""
        keep = self._settings.checkpoints_to_keep
        for old in all_checkpoints(self.output_dir)[:-keep]:
            remove_checkpoint(old)
        state = f'model_checkpoint_path: "{CHECKPOINT_NAME}-{step}"\n'
        atomic_write(self.output_dir / STATE_FILE, state)

    def save_best(self, step: int, metric: str, value: float) -> None:
        """Replace the best model so far, which is stored with its score.

        Args:
            step: Number of completed updates.
            metric: Name of the score.
            value: The score.
        """
        with atomic_folder(self.output_dir / BEST_FOLDER) as folder:
            write_checkpoint(self._model, folder, step)
            (folder / metric).write_text(f"{value!r}\n", encoding="utf-8")

    def best_value(self, metric: str) -> float:
        """Return the score of the best model so far, or minus infinity without one."""
        folder = current_folder(self.output_dir / BEST_FOLDER)
        try:
            return float((folder / metric).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return -math.inf

    def clean_up(self) -> None:
        """Remove the half-written files of an earlier process.

        Call this only where no other process is training in the folder.
        """
        remove_partial_checkpoints(self.output_dir)
        recover_folder(self.output_dir / BEST_FOLDER)

    def restore_latest(self) -> str | None:
        """Restore the newest checkpoint that is not damaged.

        Newer ones are damaged and renamed to `model.ckpt-N.damaged`. A clean-up
        that a killed process did not finish is completed.

        Returns:
            Path of the checkpoint, or None if the folder has none.

        Raises:
            UserError: If all checkpoints are damaged, or the newest intact one belongs
                to another model.
        """
        path = self._restore_newest(all_checkpoints(self.output_dir))
        if path is not None:
            self._tidy(step_of(path))
            if not self.is_regular(step_of(path)):
                self._stopped_at = path
        return path

    def is_regular(self, step: int) -> bool:
        """Return whether an uninterrupted run would save a checkpoint at a step."""
        between = self._settings.steps_between_checkpoints
        return not between or step % between == 0

    def roll_back(self, last_step: int) -> str | None:
        """Restore an earlier checkpoint, except for the position in the data.

        Newer checkpoints are removed. Regular ones are preferred.

        Args:
            last_step: The checkpoint is of this step or an earlier one.

        Returns:
            Path of the checkpoint, or None if the folder has none so early.
        """
        paths = [p for p in all_checkpoints(self.output_dir) if step_of(p) <= last_step]
        regular = [path for path in paths if self.is_regular(step_of(path))]
        position = [v.numpy() for v in (self.epoch, self.batches)]
        self.window.assign("")  # a checkpoint of an earlier version has none
        path = self._restore_newest(regular or paths)
        if path is None:
            return None
        for variable, value in zip((self.epoch, self.batches), position, strict=True):
            variable.assign(value)
        self._remove_after(step_of(path))
        self._tidy(step_of(path))
        return path

    def _remove_after(self, step: int) -> None:
        """Remove the checkpoints after a step, the newest first."""
        for path in reversed(all_checkpoints(self.output_dir)):
            if step_of(path) > step:
                remove_checkpoint(path)

    def _restore_newest(self, paths: list[str]) -> str | None:
        """Restore the last of these checkpoints that is not damaged."""
        damaged: dict[str, str] = {}
        for path in reversed(paths):
            try:
                restore(
                    self._variables,
                    path,
                    "Train into another folder.",
                    optional=_ADDED_LATER,
                )
            except DamagedCheckpointError as error:
                damaged[path] = error.reason
                continue
            for other, reason in damaged.items():
                self._set_aside(other, reason, step_of(path))
            return path
        if damaged:
            names = ", ".join(Path(path).name for path in damaged)
            newest = next(iter(damaged.values()))
            raise UserError(
                f"cannot resume: no checkpoint in {self.output_dir} can be read "
                f"({names}): the newest {newest}.\nCopy an intact one there "
                "to resume from it, or train into another folder."
            )
        return None

    def _set_aside(self, path: str, reason: str, step: int) -> None:
        """Rename a damaged checkpoint, so that it does not count as the newest."""
        aside = f"{path}.damaged"
        name = Path(path).name
        for kind in ("data-*", "index"):
            for file in checkpoint_files(path, kind):
                file.replace(aside + file.name.removeprefix(name))
        logger.warning(
            "checkpoint %s %s: renamed to %s; resuming from step %d",
            path,
            reason,
            Path(aside).name,
            step,
        )


class ReadOnlyCheckpoints(TrainingCheckpoints):
    """The checkpoints of a run for a process that reads them while another one writes.

    It holds the same state, and restores the same checkpoints.
    """

    def save(self, step: int) -> str:
        """Write nothing, and return the path that the other process writes."""
        return str(self.output_dir / f"{CHECKPOINT_NAME}-{step}")

    def save_best(self, step: int, metric: str, value: float) -> None:
        """Write nothing."""

    def clean_up(self) -> None:
        """Remove nothing."""

    def _tidy(self, step: int) -> None:
        """Remove nothing."""

    def _remove_after(self, step: int) -> None:
        """Remove nothing."""

    def _set_aside(self, path: str, reason: str, step: int) -> None:
        """Rename nothing."""


def seed_dropout_per_replica(
    model: keras.Model, strategy: tf.distribute.Strategy, first_replica: int = 0
) -> None:
    """Give every replica its own random state, derived from the first replica's.

    Keras starts all replicas from the same state, so that row 1 of every replica would
    lose the same units. Call this when the state is new or restored; checkpoints hold
    the state of the first replica.

    Args:
        model: A model made under the strategy's scope.
        strategy: The strategy of the replicas.
        first_replica: Number of this process's first replica among all replicas.
    """
    for state in random_states(model).values():
        copies = strategy.experimental_local_results(state)
        start = tf.identity(copies[0])
        for number, copy in enumerate(copies, first_replica):
            copy.assign(start + tf.constant([number, 0], start.dtype))
