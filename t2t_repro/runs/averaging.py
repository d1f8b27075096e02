"""Average the weights of a run's last checkpoints."""

from __future__ import annotations

import logging
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.files import folder_lock
from t2t_repro.runs.run import Run
from t2t_repro.training.averaging import average_checkpoints
from t2t_repro.training.checkpoints import all_checkpoints, step_of

logger = logging.getLogger(__name__)

LOCK_FILE = ".averaging.lock"


def average(
    output_dir: str | Path, last: int = 5, t2t_usr_dir: str | Path | None = None
) -> str:
    """Average the last checkpoints of a run; paper section 6.1: 5 for base, 20 for big.

    Args:
        output_dir: Folder of the run.
        last: Number of checkpoints.
        t2t_usr_dir: Folder of the user's package; by default the run's.

    Returns:
        Path of the averaged checkpoint, in `output_dir`/averaged.

    Raises:
        UserError: If the run has fewer checkpoints; an earlier average stays.
    """
    run = Run.load_existing(output_dir)
    run.load_catalogue(t2t_usr_dir)
    paths = all_checkpoints(output_dir)
    if not paths:
        raise UserError(f"no checkpoint in {output_dir}: `t2t train` writes them.")
    if len(paths) < last:
        raise UserError(
            f"received last={last}, but {output_dir} has {len(paths)} checkpoint(s), "
            f"of step {_steps(paths)}: give at most {len(paths)}. The training's "
            "keep_checkpoint_max decides how many are kept."
        )
    return average_paths(run, output_dir, paths[-last:])


def average_paths(run: Run, output_dir: str | Path, paths: list[str]) -> str:
    """Average the given checkpoints of a run and return the path of the result."""
    logger.info("averaging %d checkpoint(s), of step %s", len(paths), _steps(paths))
    with folder_lock(Path(output_dir), LOCK_FILE, "averaging"):
        model = run.build_model(*run.load_tokenizers(output_dir))
        return average_checkpoints(model, output_dir, paths)


def _steps(paths: list[str]) -> str:
    return ", ".join(str(step_of(path)) for path in paths)
