"""The variables of a checkpoint that tensor2tensor wrote, and their values.

tensor2tensor writes TensorFlow 1's format: names and values, nothing that is executed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.old_checkpoint_files import find_old_checkpoint
from t2t_repro.training.checkpoints import checkpoint_files, open_checkpoint

# A key that only object-based checkpoints of TensorFlow 2 have.
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
_ADVICE = "Copy the files of the checkpoint again, or give another one."


@dataclasses.dataclass(frozen=True)
class OldCheckpoint:
    """The variables of a checkpoint, whose values are read on demand.

    Attributes:
        path: Path of the checkpoint, without `.index`.
        shapes: Shape of each variable by its name.
    """

    path: str
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def folder(self) -> Path:
        """The folder of the checkpoint."""
        return Path(self.path).parent

    @classmethod
    def open(
        cls, model: str | Path, checkpoint_path: str | None = None
    ) -> OldCheckpoint:
        """Find a checkpoint and read the names and shapes of its variables.

        Args:
            model: Folder that `t2t-trainer` or `t2t-avg-all` wrote, or the path of a
                checkpoint or of one of its files.
            checkpoint_path: Path of a checkpoint to use instead of the folder's newest.

        Raises:
            UserError: If there is none, it is damaged, or TensorFlow 2 wrote it.
        """
        path = find_old_checkpoint(checkpoint_path or model)
        with open_checkpoint(path, _ADVICE) as reader:
            types = reader.get_variable_to_dtype_map()
            shapes = {
                name: tuple(shape)
                for name, shape in reader.get_variable_to_shape_map().items()
            }
        if _OBJECTS in shapes:
            raise UserError(
                f"received {path}, a checkpoint of TensorFlow 2, expected one that "
                "tensor2tensor wrote with TensorFlow 1: `t2t-trainer --output_dir` "
                "names the folder."
            )
        sizes = {name: types[name].size for name in shapes}
        _check_size(path, shapes, sizes)
        return cls(path, dict(sorted(shapes.items())))

    def values(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return the values of variables by name.

        Raises:
            UserError: If the files cannot be read.
        """
        with open_checkpoint(self.path, _ADVICE) as reader:
            return {name: np.asarray(reader.get_tensor(name)) for name in names}


def _check_size(
    path: str, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]
) -> None:
    """Refuse an index that promises more than its files hold.

    Raises:
        UserError: If files are missing or cut short.
    """
    expected = sum(sizes[name] * math.prod(shape) for name, shape in shapes.items())
    found = sum(file.stat().st_size for file in checkpoint_files(path, "data-*"))
    if expected > found:
        raise UserError(
            f"received {path} with {found:,} bytes of values, expected {expected:,} "
            f"for the variables that its index names: it is cut short.\n{_ADVICE}"
        )
