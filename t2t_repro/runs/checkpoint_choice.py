"""Choose the checkpoint of a run; imports no TensorFlow."""

from __future__ import annotations

import logging
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.training.checkpoint_paths import find_checkpoint, step_of

logger = logging.getLogger(__name__)


def choose_checkpoint(output_dir: str | Path, which: str | None = None) -> str:
    """Return the path of a checkpoint and log it if the choice was automatic.

    Args:
        output_dir: Folder of the run.
        which: See `System.load`.

    Raises:
        UserError: If there is no such checkpoint.
    """
    if which is not None:
        return find_checkpoint(output_dir, which)
    chosen = latest = find_checkpoint(output_dir, "latest")
    try:
        averaged = find_checkpoint(output_dir, "averaged")
    except UserError:
        averaged = None
    if averaged is not None and step_of(averaged) >= step_of(latest):
        chosen = averaged
    logger.info("using checkpoint %s", chosen)
    return chosen
