"""Checkpoints: write, restore, keep the best, average.

A checkpoint maps `model/<path of the variable>` and `optimizer/<path>` to values,
so it can be read without building anything. tensor2tensor:
`utils/avg_checkpoints.py`, `bin/t2t_avg_all.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.files import atomic_folder, atomic_write

CHECKPOINT_NAME = "model.ckpt"
BEST_FOLDER = "best"
AVERAGED_FOLDER = "averaged"

_WHERE_FROM = {
    "latest": "`t2t train` writes it",
    "best": "`t2t train` keeps the one of highest dev BLEU, which needs a dev split "
    "and --eval_sentences above 0",
    "averaged": "`t2t average --output_dir {output_dir}` makes it",
}

# Part ("model", "optimizer", "random", "data") -> path of a variable -> the variable
Variables = Mapping[str, Mapping[str, tf.Variable]]


def _by_path(variables: Sequence[keras.Variable]) -> dict[str, tf.Variable]:
    """Map the paths of variables to what TensorFlow saves."""
    by_path = {variable.path: variable.value for variable in variables}
    if len(by_path) != len(variables):
        raise ValueError("Two variables have the same path.")
    return by_path


def model_variables(model: keras.Model) -> Variables:
    """Return what a checkpoint of a model alone holds, without an optimizer."""
    return {"model": _by_path(model.weights)}


def random_states(model: keras.Model) -> dict[str, tf.Variable]:
    """Return the states of the dropout generators, numbered: names vary by process."""
    weights = {id(variable) for variable in model.weights}
    states = [v.value for v in model.variables if id(v) not in weights]
    return {str(number): state for number, state in enumerate(states)}


class TrainingCheckpoints:
    """The checkpoints of a run: model, optimizer, dropout, and place in the data.

    Args:
        output_dir: Folder of the run.
        model: The model.
        optimizer: Its optimizer, built.
        keep: How many of the newest checkpoints stay.

    Attributes:
        epoch: int64 variable, passes over the data that are complete.
        batches: int64 variable, global batches of this epoch that are done.
    """

    def __init__(
        self,
        output_dir: str | Path,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        keep: int,
    ) -> None:
        self.output_dir = Path(output_dir)
        self.epoch = tf.Variable(0, dtype=tf.int64, name="epoch")
        self.batches = tf.Variable(0, dtype=tf.int64, name="batches")
        self._variables: Variables = {
            **model_variables(model),
            "optimizer": _by_path(optimizer.variables),
            "random": random_states(model),
            "data": {"epoch": self.epoch, "batches": self.batches},
        }
        self._model = model_variables(model)
        self._keep = keep

    def save(self, step: int) -> str:
        """Write the checkpoint of a step, remove the oldest, and return its path.

        Differs from `tf.train.CheckpointManager`: which checkpoints there are is read
        from their files, as in `find_checkpoint`. The manager believes a file of its
        own, and begins anew when that is lost or the clock has been set back.
        """
        path = str(self.output_dir / f"{CHECKPOINT_NAME}-{step}")
        tf.train.Checkpoint(**self._variables).write(path)
        there = all_checkpoints(self.output_dir)
        for old in there[: -self._keep]:
            _remove(old)
        # For programs that ask tf.train.latest_checkpoint.
        state = f'model_checkpoint_path: "{CHECKPOINT_NAME}-{step}"\n'
        atomic_write(self.output_dir / "checkpoint", state)
        return path

    def save_best(self, step: int, metric: str, value: float) -> None:
        """Write the model alone and its score, in place of the best one so far."""
        with atomic_folder(self.output_dir / BEST_FOLDER) as folder:
            _write(self._model, folder, step)
            (folder / metric).write_text(f"{value!r}\n", encoding="utf-8")

    def best_value(self, metric: str) -> float:
        """Return the score of the best model so far, minus infinity without one."""
        try:
            return float((self.output_dir / BEST_FOLDER / metric).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return -math.inf

    def restore_latest(self) -> str | None:
        """Restore the newest checkpoint, if there is one, and return its path.

        Raises:
            UserError: If it is damaged or belongs to another model.
        """
        there = all_checkpoints(self.output_dir)
        if not there:
            return None
        restore(self._variables, there[-1])
        return there[-1]


def _remove(path: str) -> None:
    """Remove a checkpoint; the index first, without which it is none."""
    Path(f"{path}.index").unlink()
    for data in Path(path).parent.glob(f"{Path(path).name}.data-*"):
        data.unlink()


def _write(variables: Variables, folder: Path, step: int) -> None:
    tf.train.Checkpoint(**variables).write(str(folder / f"{CHECKPOINT_NAME}-{step}"))


def restore(variables: Variables, path: str) -> None:
    """Assign every variable from a file; other values in the file are left alone.

    Args:
        variables: What to assign.
        path: Path of the checkpoint, without `.index`.

    Raises:
        UserError: If the file is damaged, or its variables are not those expected.
    """
    try:
        reader = tf.train.load_checkpoint(path)
        values = {
            (part, name): reader.get_tensor(_key(part, name))
            for part, names in variables.items()
            for name in names
        }
        for (part, name), value in values.items():
            variables[part][name].assign(value)
    # TensorFlow's reader raises Python's own for some, IndexError for a file cut short.
    except (tf.errors.OpError, ValueError, IndexError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise UserError(
            f"cannot restore checkpoint {path}: {reason}\n"
            "It is damaged, or of a model with other hparams: give another one with "
            "--checkpoint_path, or remove its files to go on from the one before."
        ) from error


def _key(part: str, name: str) -> str:
    """Return the name under which `tf.train.Checkpoint` files a variable of a dict."""
    escaped = name.replace(".", "..").replace("/", ".S")
    return f"{part}/{escaped}/.ATTRIBUTES/VARIABLE_VALUE"


def all_checkpoints(output_dir: str | Path) -> list[str]:
    """Return the paths of the checkpoints in a folder, oldest step first."""
    folder = Path(output_dir)
    steps = {}
    for index in folder.glob(f"{CHECKPOINT_NAME}-*.index"):
        if match := re.fullmatch(rf"{CHECKPOINT_NAME}-(\d+)", index.stem):
            steps[int(match[1])] = str(index.with_suffix(""))
    return [steps[step] for step in sorted(steps)]


def find_checkpoint(output_dir: str | Path, which: str = "latest") -> str:
    """Find a checkpoint by "latest", "best", "averaged", or a path.

    Raises:
        UserError: If there is none.
    """
    folders = {"latest": "", "best": BEST_FOLDER, "averaged": AVERAGED_FOLDER}
    if which in folders:
        found = all_checkpoints(Path(output_dir) / folders[which])
        if found:
            return found[-1]
        hint = _WHERE_FROM[which].format(output_dir=output_dir)
        raise UserError(f"no {which} checkpoint in {output_dir}: {hint}.")
    path = re.sub(r"\.(index|data-\d+-of-\d+)$", "", which)
    if not Path(f"{path}.index").exists():
        raise UserError(
            f"received checkpoint path {which}, expected latest, best, averaged, or "
            f"the path of a checkpoint such as OUTPUT_DIR/{CHECKPOINT_NAME}-1000."
        )
    return path


def step_of(path: str) -> int:
    """Return the step in a checkpoint's name."""
    return int(path.rpartition("-")[2])


def average_checkpoints(
    model: keras.Model, output_dir: str | Path, paths: Sequence[str]
) -> str:
    """Average the weights of several checkpoints into `output_dir`/averaged.

    Sums are taken in float64. Optimizer state is left out (tensor2tensor's averaged
    files hold it and are three times as large).

    Args:
        model: A model of the right shape; it has the averaged weights afterwards.
        output_dir: Folder of the run.
        paths: Checkpoints, oldest first.

    Returns:
        Path of the averaged checkpoint, which bears the last one's step.
    """
    variables = model_variables(model)
    sums = [np.zeros(v.shape, np.float64) for v in model.trainable_variables]
    for path in paths:
        restore(variables, path)
        for total, variable in zip(sums, model.trainable_variables, strict=True):
            total += variable.numpy()
    for total, variable in zip(sums, model.trainable_variables, strict=True):
        variable.assign(total / len(paths))
    with atomic_folder(Path(output_dir) / AVERAGED_FOLDER) as folder:
        _write(variables, folder, step_of(paths[-1]))
    return find_checkpoint(output_dir, "averaged")
