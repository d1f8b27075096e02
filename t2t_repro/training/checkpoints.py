"""Read, write and average checkpoints.

A checkpoint maps `model/<path of the variable>` and `optimizer/<path>` to values,
so it can be read without building anything.
"""

from __future__ import annotations

import errno
import glob
import math
import os
import re
import shutil
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.files import (
    INCOMPLETE,
    atomic_folder,
    full_disk_as_user_error,
    matching,
    without_pattern,
)
from t2t_repro.training.checkpoint_paths import (
    AVERAGED_FOLDER,
    CHECKPOINT_NAME,
    STATE_FILE,
    find_checkpoint,
    step_of,
)

# Part ("model", "optimizer", ...) -> path of a variable -> the variable
Variables = Mapping[str, Mapping[str, tf.Variable]]

# A folder that became read-only, or a failing disk
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
_NOT_FOUND = os.strerror(errno.ENOENT)
# TensorFlow's reader raises some of Python's errors: IndexError if a file is cut short.
_READ_ERRORS = (tf.errors.OpError, ValueError, IndexError, RuntimeError)


class DamagedCheckpointError(UserError):
    """Error raised when the files of a checkpoint cannot be read.

    Attributes:
        reason: The damage, as the end of a sentence.
    """

    def __init__(self, path: str, reason: str, advice: str) -> None:
        missing = not Path(f"{path}.index").exists() or _NOT_FOUND in reason
        fault = "lacks a file" if missing else "is damaged"
        self.reason = f"{fault} ({reason.strip().splitlines()[0][:200]})"
        super().__init__(
            f"cannot restore checkpoint {path}: it {self.reason}.\n{advice}"
        )


def variables_by_path(variables: Sequence[keras.Variable]) -> dict[str, tf.Variable]:
    """Map the paths of Keras variables to their TensorFlow variables.

    Raises:
        ValueError: If two of them have the same path.
    """
    by_path = {variable.path: variable.value for variable in variables}
    if len(by_path) != len(variables):
        raise ValueError("Two variables have the same path.")
    return by_path


def model_variables(model: keras.Model) -> Variables:
    """Return the variables in a checkpoint of a model alone, without an optimizer."""
    return {"model": variables_by_path(model.weights)}


def write_checkpoint(variables: Variables, folder: Path, step: int) -> str:
    """Write the checkpoint of a step and return its path.

    Args:
        variables: The variables to save.
        folder: An existing folder.
        step: Number of completed updates.

    Raises:
        OSError: If the folder cannot be written to.
        tf.errors.ResourceExhaustedError: If the disk is full.
    """
    path = str(folder / f"{CHECKPOINT_NAME}-{step}")
    try:
        # TensorFlow writes an index in place, and through a link.
        temporary = Path(mkdtemp("_temp", f"{CHECKPOINT_NAME}-{step}.", folder))
        tf.train.Checkpoint(**variables).write(str(temporary / Path(path).name))
        for file in sorted(temporary.iterdir()):  # the index comes last
            file.replace(folder / file.name)
        temporary.rmdir()
    except BaseException as error:
        remove_partial_checkpoints(folder)
        number = next((n for n in _UNWRITABLE if os.strerror(n) in str(error)), None)
        if number is None or isinstance(error, OSError):
            raise
        raise OSError(number, os.strerror(number), path) from error
    return path


def remove_checkpoint(path: str) -> None:
    """Remove the files of a checkpoint, its index first, so that no part is read."""
    Path(f"{path}.index").unlink()
    for data in checkpoint_files(path, "data-*"):
        data.unlink()


def checkpoint_files(path: str, kind: str = "*") -> list[Path]:
    """Return the files of a checkpoint, such as those of the kind "data-*"."""
    folder, name = Path(path).parent, Path(path).name
    return matching(folder, f"{glob.escape(name)}.{kind}")


def remove_partial_checkpoints(folder: Path) -> None:
    """Remove the remains of interrupted writing or removal of checkpoints."""
    for temporary in matching(folder, f"{CHECKPOINT_NAME}-*_temp"):
        shutil.rmtree(temporary, ignore_errors=True)
    for kind in (f"{CHECKPOINT_NAME}-*.tempstate*", f"{STATE_FILE}.*{INCOMPLETE}"):
        for file in matching(folder, kind):
            file.unlink()
    for data in matching(folder, f"{CHECKPOINT_NAME}-*.data-*"):
        if not data.with_name(data.name.partition(".data-")[0] + ".index").exists():
            data.unlink()


def restore(
    variables: Variables,
    path: str,
    advice: str = "Use another checkpoint.",
    optional: Collection[str] = (),
) -> None:
    """Assign every variable from a checkpoint; other values in it are ignored.

    Nothing is assigned before everything has been read.

    Differs from `tf.train.Checkpoint.read`, which assigns while it reads, so that a
    file damaged in the middle changes half a model. Reading into copies would take the
    same time (1.5 s for 800 MB). But when it raises, there is no status to call
    `expect_partial` on, and TensorFlow 2.21 logs two warnings for every value that was
    not read: 146 lines for a model with one layer.

    Args:
        variables: The variables to assign.
        path: Path of the checkpoint, without `.index`.
        advice: Advice to the user if it fails, as a sentence.
        optional: Parts that may be missing in the checkpoint; their variables keep
            their values.

    Raises:
        DamagedCheckpointError: If the files cannot be read.
        UserError: If the checkpoint belongs to another model.
    """
    with open_checkpoint(path, advice) as reader:
        shapes = reader.get_variable_to_shape_map()
        found = {key.partition("/")[0] for key in shapes}
        missing = set(optional) - found
        variables = {p: v for p, v in variables.items() if p not in missing}
        mismatch = _mismatch(variables, shapes)
        keyed = {
            _key(part, name): variable
            for part, named in variables.items()
            for name, variable in named.items()
        }
        values = {} if mismatch else {key: reader.get_tensor(key) for key in keyed}
    if mismatch:
        raise UserError(
            f"cannot restore checkpoint {path}: it is of a model with other hparams "
            f"than those in the hparams.json of the run ({mismatch}).\n{advice}"
        )
    for key, value in values.items():
        keyed[key].assign(value)


def parameters_of_checkpoint(path: str) -> int:
    """Return the number of values of the model in a checkpoint, without reading them.

    Args:
        path: Path of the checkpoint, without `.index`.

    Raises:
        DamagedCheckpointError: If the files cannot be read.
    """
    with open_checkpoint(path, "Use another checkpoint.") as reader:
        shapes = reader.get_variable_to_shape_map()
    return sum(math.prod(shapes[key]) for key in shapes if key.startswith("model/"))


def read_values(path: str, part: str) -> dict[str, np.ndarray]:
    """Read the values of one part of a checkpoint by the paths of their variables.

    Args:
        path: Path of the checkpoint, without `.index`.
        part: Name of the part, such as "model".

    Raises:
        DamagedCheckpointError: If the files cannot be read.
    """
    start, end = f"{part}/", _key("", "").removeprefix("/")
    with open_checkpoint(path, "Use another checkpoint.") as reader:
        return {
            _unescape(key[len(start) : -len(end)]): reader.get_tensor(key)
            for key in sorted(reader.get_variable_to_shape_map())
            if key.startswith(start) and key.endswith(end)
        }


@contextmanager
def open_checkpoint(path: str, advice: str) -> Generator[tf.train.CheckpointReader]:
    """Open a checkpoint, and report errors of reading it in the block.

    Raises:
        DamagedCheckpointError: If the files cannot be read.
    """
    for file in checkpoint_files(path):
        if file.exists() and not (file.is_file() or file.is_dir()):
            reason = f"{file.name} is not a regular file"  # reading might never end
            raise DamagedCheckpointError(path, reason, advice)
        # A file without read permission is not damaged; this error names it.
        file.open("rb").close()
    with without_pattern(path) as readable:
        try:
            yield tf.train.load_checkpoint(readable)
        except _READ_ERRORS as error:
            reason = str(error).replace(readable, path)
            raise DamagedCheckpointError(path, reason, advice) from error


def _mismatch(variables: Variables, shapes: Mapping[str, list[int]]) -> str | None:
    """Describe the first variable that is missing or has another shape."""
    for part, named in variables.items():
        for name, variable in named.items():
            found = shapes.get(_key(part, name))
            if found is None:
                return f"{name} is not in it"
            if found != variable.shape.as_list():
                expected = variable.shape.as_list()
                return f"{name} has shape {found} there, expected {expected}"
    return None


def _key(part: str, name: str) -> str:
    """Return the key of a variable that `tf.train.Checkpoint` saved from a dict."""
    escaped = name.replace(".", "..").replace("/", ".S")
    return f"{part}/{escaped}/.ATTRIBUTES/VARIABLE_VALUE"


def _unescape(name: str) -> str:
    """Undo the escaping of `_key`."""
    return re.sub(r"\.(\.|S)", lambda m: "/" if m[1] == "S" else ".", name)


def average_checkpoints(
    model: keras.Model, output_dir: str | Path, paths: Sequence[str]
) -> str:
    """Average the weights of several checkpoints into `output_dir`/averaged.

    Sums are float64. Differs from tensor2tensor: the averaged checkpoint holds no
    optimizer state, which would make it three times as large.

    Args:
        model: A model of the right shape. It has the averaged weights afterwards.
        output_dir: Folder of the run.
        paths: Paths of the checkpoints, oldest first.

    Returns:
        Path of the averaged checkpoint, which is named after the last one's step.

    Raises:
        UserError: If a checkpoint is damaged or belongs to another model, or the disk
            is full. An earlier average is still there.
    """
    variables = model_variables(model)
    sums = [np.zeros(v.shape, np.float64) for v in model.trainable_variables]
    for path in paths:
        restore(variables, path, "Remove its files to average the others.")
        for total, variable in zip(sums, model.trainable_variables, strict=True):
            total += variable.numpy()
    for total, variable in zip(sums, model.trainable_variables, strict=True):
        variable.assign(total / len(paths))
    return write_averaged(model, output_dir, step_of(paths[-1]))


def write_averaged(model: keras.Model, output_dir: str | Path, step: int) -> str:
    """Write a model's weights as the averaged checkpoint of a run; return its path.

    Args:
        model: The model.
        output_dir: Folder of the run.
        step: Step of the last weights in the average.

    Raises:
        UserError: If the disk is full. An earlier average is still there.
    """
    folder = Path(output_dir) / AVERAGED_FOLDER
    with (
        full_disk_as_user_error(folder, "then average again"),
        atomic_folder(folder) as incomplete,
    ):
        write_checkpoint(model_variables(model), incomplete, step)
    return find_checkpoint(output_dir, "averaged")
