"""Average the weights of a run's last checkpoints."""

from __future__ import annotations

import logging
from pathlib import Path

from t2t_repro.files import folder_lock
from t2t_repro.runs.checkpoint_fit import check_fits
from t2t_repro.runs.run import Run
from t2t_repro.settings.train_settings import CHECKPOINTS_TO_AVERAGE
from t2t_repro.training.averaging import average_checkpoints
from t2t_repro.training.checkpoint_paths import (
    best_checkpoints,
    last_checkpoints,
    latest_step,
    step_of,
    steps_text,
)

logger = logging.getLogger(__name__)

LOCK_FILE = ".averaging.lock"


def average(
    output_dir: str | Path,
    last: int = CHECKPOINTS_TO_AVERAGE,
    t2t_usr_dir: str | Path | None = None,
    *,
    best: int | None = None,
) -> str:
    """Average the last checkpoints of a run; paper section 6.1: 5 for base, 20 for big.

    Args:
        output_dir: Folder of the run.
        last: Number of checkpoints.
        t2t_usr_dir: Folder of the user's package; by default the run's, if
            the user agreed to run its code; see `Run.package`.
        best: Number of checkpoints with the highest scores, to average them in place of
            the last ones.

    Returns:
        Path of the averaged checkpoint, in `output_dir`/averaged.

    Raises:
        UserError: If the run has fewer checkpoints; an earlier average is kept.
    """
    run = Run.load_existing(output_dir)
    run.load_catalogue(t2t_usr_dir)
    paths = paths_to_average(output_dir, last, best)
    averaged = average_paths(run, output_dir, paths)
    step = step_of(paths[-1])
    if step < latest_step(output_dir):
        logger.warning(
            "the average ends at step %d, before the newest checkpoint, which other "
            "commands use by default: give them checkpoint_path=averaged",
            step,
        )
    return averaged


def paths_to_average(
    output_dir: str | Path, last: int, best: int | None = None
) -> list[str]:
    """Return the checkpoints that `average` reads.

    Raises:
        UserError: If the run has fewer.
    """
    if best is None:
        return last_checkpoints(output_dir, last)
    return best_checkpoints(output_dir, best)


def average_paths(run: Run, output_dir: str | Path, paths: list[str]) -> str:
    """Average the given checkpoints of a run and return the path of the result."""
    logger.info("averaging %d checkpoint(s), of step %s", len(paths), steps_text(paths))
    with folder_lock(Path(output_dir), LOCK_FILE, "averaging"):
        tokenizers = run.load_tokenizers(output_dir)
        check_fits(run, output_dir, tokenizers, paths[-1])
        model = run.build_model(*tokenizers)
        return average_checkpoints(model, output_dir, paths)
