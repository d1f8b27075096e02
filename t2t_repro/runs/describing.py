"""Write the description of a run, or compare it with the run to resume."""

from __future__ import annotations

import dataclasses
import logging
import shutil
from pathlib import Path

from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UsageError
from t2t_repro.runs.resuming import resumable_run
from t2t_repro.runs.run import Run, loop_settings, save_tokenizers
from t2t_repro.runs.run_checkpoints import check_fits
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoint_paths import (
    BEST_FOLDER,
    BEST_MODELS_FOLDER,
    all_checkpoints,
    latest_step,
)
from t2t_repro.training.metrics_file import event_files

logger = logging.getLogger(__name__)


def begin_or_resume(
    settings: TrainSettings,
    hparams: HParams,
    data: PreparedData,
    num_replicas: int,
) -> Run:
    """Write the description of a run, after comparing it with the one to resume.

    Args:
        settings: Model, folder and schedule of the training run.
        hparams: Resolved hparams.
        data: Prepared data.
        num_replicas: Number of replicas of all workers.

    Raises:
        UsageError: If the user asked for one vocabulary, and the data has two.
        UserError: If the folder holds another run, or its description asks for a much
            larger model than its checkpoint has.
    """
    output_dir = Path(settings.output_dir)
    tokenizers = data.tokenizers()
    _check_sharing(hparams, *tokenizers)
    asked = describe(settings, hparams, data, num_replicas)
    before = resumable_run(output_dir)
    if before is not None:
        before.check_same_tokenizers(output_dir, *tokenizers)
        before.check_resumable(asked, output_dir)
        check_fits(before, output_dir, tokenizers, all_checkpoints(output_dir)[-1])
        _warn_of_a_rising_rate(before, settings)
        # The data and the package may have moved.
        run = dataclasses.replace(
            before,
            training=asked.training
            | {"warm_start_from": before.training.get("warm_start_from")},
            data_dir=asked.data_dir,
            usr_dir=asked.usr_dir,
        )
    else:
        _remove_what_a_dead_run_left(output_dir)
        names = save_tokenizers(output_dir, *tokenizers)
        run = dataclasses.replace(asked, tokenizers=names)
    run.save(output_dir)
    return run


def _warn_of_a_rising_rate(before: Run, settings: TrainSettings) -> None:
    """Log that training further raises a learning rate that has begun to decay."""
    hparams = before.hparams.resolved()
    end, new_end = before.training.get("train_steps", 0), settings.train_steps
    step, decay = latest_step(settings.output_dir), hparams.learning_rate_decay_steps
    if "linear_decay" not in hparams.learning_rate_schedule or new_end <= end:
        return
    if step > end - decay:
        was, becomes = (min(1.0, (last + 1 - step) / decay) for last in (end, new_end))
        logger.warning(
            "the learning rate rises again: with train_steps=%d, linear_decay was at "
            "%.2g of the rate at step %d, and with train_steps=%d it is at %.2g",
            *(end, was, step, new_end, becomes),
        )


def _remove_what_a_dead_run_left(output_dir: Path) -> None:
    """Remove the best models and events of a run that has no checkpoint to resume from.

    Such a run wrote its description first. Without one, everything belongs to others.
    """
    if Run.load(output_dir) is None:
        return
    for stale in (BEST_FOLDER, BEST_MODELS_FOLDER):
        shutil.rmtree(output_dir / stale, ignore_errors=True)
    for events in event_files(output_dir):
        events.unlink()


def describe(
    settings: TrainSettings, hparams: HParams, data: PreparedData, num_replicas: int
) -> Run:
    """Return the description of a run, without its tokenizers."""
    usr_dir = settings.t2t_usr_dir
    return Run(
        problem=data.problem.name,
        model=settings.model,
        hparams_set=settings.hparams_set,
        hparams=hparams,
        random_seed=settings.random_seed,
        num_replicas=num_replicas,
        data_dir=str(data.folder.resolve()),
        data_digest=data.digest,
        usr_dir=None if usr_dir is None else str(Path(usr_dir).resolve()),
        tokenizers={},
        training=loop_settings(settings),
    )


def _check_sharing(hparams: HParams, source: Tokenizer, target: Tokenizer) -> None:
    """Log if embeddings are not shared because there are two vocabularies.

    Raises:
        UsageError: If the user asked for sharing.
    """
    name = "shared_embedding_and_softmax_weights"
    if source is target or not getattr(hparams, name):
        return
    if hparams.origins[name] == HParams.flag:
        raise UsageError(
            f"received {name}=true, and data with one vocabulary per side, whose ids "
            "mean different text: leave it out, or prepare the data with one "
            "vocabulary for both."
        )
    logger.info("two vocabularies: embeddings and softmax share no weights")
