"""Choose a checkpoint of a run, check that it fits, or average several.

This module imports no TensorFlow before it reads a checkpoint.
"""

from __future__ import annotations

import logging
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.files import folder_lock
from t2t_repro.models.estimates import parameter_count
from t2t_repro.runs.run import RUN_FILE, Run
from t2t_repro.settings.train_settings import CHECKPOINTS_TO_AVERAGE
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoint_paths import (
    AVERAGED_FOLDER,
    all_checkpoints,
    best_checkpoints,
    find_checkpoint,
    last_checkpoints,
    latest_step,
    step_of,
    steps_text,
)

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


# An attention of the user's package may have fewer parameters than are counted. What
# is left is compared when the weights are read.
_TOLERANCE = 2


def check_fits(
    run: Run,
    output_dir: str | Path,
    tokenizers: tuple[Tokenizer, Tokenizer],
    checkpoint: str,
) -> None:
    """Refuse a run whose description asks for a much larger model than it has.

    Building that model could take hours, or all memory.

    Args:
        run: Description of the run.
        output_dir: Folder of the run.
        tokenizers: Tokenizers of the run's inputs and targets.
        checkpoint: Path of the checkpoint.

    Raises:
        UserError: If the checkpoint is much smaller.
    """
    from t2t_repro.training.checkpoints import (
        DamagedCheckpointError,
        parameters_of_checkpoint,
    )

    if run.model != "transformer":  # only its parameters can be counted
        return
    source, target = tokenizers
    hparams = run.hparams.for_vocabularies(shared=source.same_ids(target))
    described = parameter_count(hparams, source.vocab_size, target.vocab_size)
    try:
        stored = parameters_of_checkpoint(checkpoint)
    except DamagedCheckpointError:
        return  # `restore` reports it, or an older checkpoint is read
    if described > _TOLERANCE * stored:
        resolved = hparams.resolved()
        raise UserError(
            f"{Path(output_dir) / RUN_FILE} describes a model of {described:,} "
            f"parameters ({resolved.num_encoder_layers} + "
            f"{resolved.num_decoder_layers} layers of width {resolved.hidden_size}), "
            f"and the checkpoint {checkpoint} has {stored:,}: one of the two is of "
            "another run.\nRestore it from a copy, or give another checkpoint."
        )


AVERAGING_LOCK = ".averaging.lock"


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
    from t2t_repro.training.checkpoints import average_checkpoints

    logger.info("averaging %d checkpoint(s), of step %s", len(paths), steps_text(paths))
    with folder_lock(Path(output_dir), AVERAGING_LOCK, "averaging"):
        tokenizers = run.load_tokenizers(output_dir)
        check_fits(run, output_dir, tokenizers, paths[-1])
        model = run.build_model(*tokenizers)
        return average_checkpoints(model, output_dir, paths)


def current_average(output_dir: str | Path) -> str | None:
    """Return the path of an average that a finished run keeps, or None."""
    checkpoints = all_checkpoints(output_dir)
    averages = all_checkpoints(Path(output_dir) / AVERAGED_FOLDER)
    if averages and _should_keep(averages[-1], checkpoints):
        return averages[-1]
    return None


def _should_keep(averaged: str, checkpoints: list[str]) -> bool:
    """Return whether to keep an average: it has the last step, or is younger.

    Args:
        averaged: Path of the average.
        checkpoints: Paths of the checkpoints, oldest step first.
    """
    if not checkpoints or step_of(averaged) > step_of(checkpoints[-1]):
        return False
    # The best checkpoints, which `t2t average --best` reads, may end before the last.
    return step_of(averaged) == step_of(checkpoints[-1]) or _written_at(
        averaged
    ) > _written_at(checkpoints[-1])


def _written_at(checkpoint: str) -> float:
    """Return the time at which a checkpoint was written, in seconds."""
    return Path(f"{checkpoint}.index").stat().st_mtime
