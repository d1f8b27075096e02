"""Folders of NumPy arrays that carry a training run between machines; no TensorFlow.

Such a folder holds a description, the state of a training run (weights, optimizer and
states of dropout), and the batches to train on. Each of the last two may be missing.
"""

from __future__ import annotations

import dataclasses
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import keras
import numpy as np

from t2t_repro.constants import INPUTS, TARGETS
from t2t_repro.description_file import description_text, load_description
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_folder
from t2t_repro.settings.hparams import HParams

DESCRIPTION_FILE = "description.json"
BATCHES_FILE = "batches.npz"
FORMAT = 1
MEBIBYTE = 2**20
MODEL, OPTIMIZER, RANDOM = "model", "optimizer", "random"

Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Description:
    """Facts about a training run that its arrays do not show.

    Attributes:
        problem: Name of the problem.
        data_digest: Digest of the prepared data.
        hparams: Hparams of the model and its training. Embeddings are shared only if
            the sides share a vocabulary.
        source_vocab_size: Size of the source vocabulary.
        target_vocab_size: Size of the target vocabulary.
        random_seed: Seed of initial weights and dropout.
        step: Number of completed updates.
        epoch: Number of complete passes over the data.
        batches: Number of completed batches of this pass.
        format: Version of the format.
    """

    problem: str
    data_digest: str
    hparams: HParams
    source_vocab_size: int
    target_vocab_size: int
    random_seed: int
    step: int
    epoch: int
    batches: int
    format: int = FORMAT

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the description in a folder.

        Raises:
            UserError: If there is none, or it is damaged or of another version.
        """
        advice = "export the arrays again."
        found = load_description(
            folder / DESCRIPTION_FILE,
            cls._from_values,
            expected_format=FORMAT,
            advice=advice,
        )
        if found is None:
            raise UserError(
                f"received {folder}, expected a folder of arrays with "
                f"{DESCRIPTION_FILE} in it: {advice}"
            )
        return found

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        return cls(hparams=HParams.from_dict(values.pop("hparams")), **values)

    def text(self) -> str:
        """Return the content of the description's file."""
        fields = dataclasses.fields(self)
        values = {field.name: getattr(self, field.name) for field in fields}
        return description_text(values | {"hparams": self.hparams.to_dict()})


@dataclasses.dataclass(frozen=True)
class Batches:
    """Batches in the order of training, and where in the data each of them ends.

    Attributes:
        inputs: Source ids of every batch, int32 `[rows, length]`.
        targets: Target ids of every batch, int32 `[rows, length]`.
        positions: Numbers of complete passes and of completed batches after every
            batch, int64 `[number of batches, 2]`.
    """

    inputs: Sequence[np.ndarray]
    targets: Sequence[np.ndarray]
    positions: np.ndarray

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, number: int) -> Arrays:
        """Return a batch, counted from 0."""
        return {INPUTS: self.inputs[number], TARGETS: self.targets[number]}

    def arrays(self) -> Arrays:
        """Return the arrays of the batches' file, by name."""
        sides = {INPUTS: self.inputs, TARGETS: self.targets}
        named = {
            f"{side}/{number}": ids
            for side, batches in sides.items()
            for number, ids in enumerate(batches)
        }
        return {"positions": self.positions, **named}

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the batches in a folder.

        Raises:
            UserError: If there are none, or the file is damaged.
        """
        arrays = read_arrays(folder / BATCHES_FILE)
        try:
            positions = arrays["positions"]
            sides = (
                [arrays[f"{side}/{number}"] for number in range(len(positions))]
                for side in (INPUTS, TARGETS)
            )
            return cls(*sides, positions)
        except KeyError as error:
            raise UserError(
                f"{folder / BATCHES_FILE} has no array {error}: export it again."
            ) from error


def state_variables(
    model: keras.Model, optimizer: keras.optimizers.Optimizer
) -> dict[str, keras.Variable]:
    """Return everything that an update changes, by a name that backends share.

    The names are `model/<path>`, `optimizer/<path>`, and `random/<number>` for the
    states of dropout, whose paths differ between processes.
    """
    weights = {id(variable) for variable in model.weights}
    states = [v for v in model.variables if id(v) not in weights]
    return {
        **{f"{MODEL}/{v.path}": v for v in model.weights},
        **{f"{OPTIMIZER}/{v.path}": v for v in optimizer.variables},
        **{f"{RANDOM}/{number}": v for number, v in enumerate(states)},
    }


def arrays_of(variables: Mapping[str, keras.Variable]) -> Arrays:
    """Return the values of variables by the same names."""
    return {name: np.asarray(v.numpy()) for name, v in variables.items()}


def assign_arrays(variables: Mapping[str, keras.Variable], arrays: Arrays) -> None:
    """Assign a value to every variable, after checking all names and shapes.

    Args:
        variables: Variables by name.
        arrays: Values by name; whole numbers may have another size in bits.

    Raises:
        UserError: If a name is missing or unknown, a shape differs, or a value is not
            finite. Nothing has been assigned.
    """
    for name in [*variables, *arrays]:
        if name not in arrays or name not in variables:
            where = "missing" if name in variables else "unknown"
            raise UserError(f"the array {name} is {where}: it is of another model.")
    for name, variable in variables.items():
        found, expected = arrays[name].shape, tuple(variable.shape)
        if found != expected:
            raise UserError(
                f"the array {name} has the shape {found}, expected {expected}: it is "
                "of another model."
            )
        if not np.isfinite(arrays[name]).all():
            raise UserError(f"the array {name} is not finite: training has diverged.")
    for name, variable in variables.items():
        variable.assign(arrays[name].astype(variable.dtype))


def write_folder(
    folder: Path,
    description: Description,
    state: Arrays,
    batches: Batches | None = None,
    *,
    bytes_per_file: int,
) -> None:
    """Write a folder of arrays, completely or not at all; it replaces an earlier one.

    Args:
        folder: Path of the folder.
        description: Description of the training run.
        state: Arrays by the names of `state_variables`; may be empty.
        batches: Batches to train on, or None.
        bytes_per_file: Largest number of bytes of arrays per file of the state. A
            larger array has its own file.
    """
    with atomic_folder(folder) as new:
        (new / DESCRIPTION_FILE).write_text(description.text(), encoding="utf-8")
        for number, part in enumerate(_parts(state, bytes_per_file)):
            np.savez(new / f"state-{number:05d}.npz", **part)
        if batches is not None:
            np.savez_compressed(new / BATCHES_FILE, **batches.arrays())


def read_state(folder: Path) -> Arrays:
    """Read the arrays of the state in a folder; empty if it has none.

    Raises:
        UserError: If a file is damaged.
    """
    arrays: Arrays = {}
    for path in sorted(folder.glob("state-*.npz")):
        arrays |= read_arrays(path)
    return arrays


def _parts(arrays: Arrays, bytes_per_part: int) -> Iterator[Arrays]:
    """Divide arrays into groups of a limited size."""
    part: Arrays = {}
    for name, array in arrays.items():
        size = sum(member.nbytes for member in part.values())
        if part and size + array.nbytes > bytes_per_part:
            yield part
            part = {}
        part[name] = array
    if part:
        yield part


def read_arrays(path: Path) -> Arrays:
    """Read all arrays of a file.

    Raises:
        UserError: If the file does not exist.
    """
    try:
        # NumPy leaves a damaged file open that it opened itself.
        with path.open("rb") as file, np.load(file) as arrays:
            return dict(arrays)
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist: export the arrays again.") from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is damaged: export the arrays again.") from error
