"""Average the weights of checkpoints (paper section 6.1).

tensor2tensor: `utils/avg_checkpoints.py`, `bin/t2t_avg_all.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from t2t_repro.files import atomic_folder, full_disk_as_user_error
from t2t_repro.training.checkpoint_paths import (
    AVERAGED_FOLDER,
    find_checkpoint,
    step_of,
)
from t2t_repro.training.checkpoints import (
    model_variables,
    restore,
    write_checkpoint,
)


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
