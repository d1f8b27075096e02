"""Train a model, or resume its training."""

from __future__ import annotations

import dataclasses
import logging
import shutil
from pathlib import Path

import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UsageError
from t2t_repro.files import folder_lock
from t2t_repro.runs.averaging import average_paths
from t2t_repro.runs.run import Run, loop_settings, save_tokenizers
from t2t_repro.runs.trainer import make_trainer
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoints import (
    AVERAGED_FOLDER,
    BEST_FOLDER,
    all_checkpoints,
    step_of,
)
from t2t_repro.training.setup import make_strategy

logger = logging.getLogger(__name__)

LOCK_FILE = ".training.lock"


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """Outcome of a training.

    Attributes:
        output_dir: Folder of the run.
        steps: Number of completed updates.
        complete: Whether training reached its last step; False after a signal to stop.
        averaged: Path of the averaged checkpoint, or None.
    """

    output_dir: Path
    steps: int
    complete: bool
    averaged: str | None


def train(
    settings: TrainSettings, data: PreparedData, *, show_progress: bool = False
) -> TrainResult:
    """Train a model, or resume its training, and average its last checkpoints.

    Args:
        settings: Model, folder and schedule of the training.
        data: Prepared data.
        show_progress: Whether to draw a progress bar if standard error is a terminal.

    Raises:
        UserError: If the folder holds another run, another process trains in it, the
            data cannot be trained on, or training diverges.
    """
    hparams = resolved_hparams(settings)
    # A problem that nobody can find again could never be loaded.
    catalogue.problem(data.problem.name)
    check_run_folder(settings, data.problem.name)
    with folder_lock(Path(settings.output_dir), LOCK_FILE, "training"):
        strategy = make_strategy(settings.cpu_replicas)
        before = resumable_run(Path(settings.output_dir))
        run = _begin_or_resume(settings, hparams, data, strategy)
        step_before = latest_step(settings.output_dir)
        trainer = make_trainer(
            run, settings, data, strategy, show_progress=show_progress
        )
        steps = trainer.train()
        # A signal during the last update leaves out the last evaluation.
        complete = steps >= settings.train_steps and trainer.stop_signal is None
        averaged = None
        if complete and settings.average_last > 1:
            trained = steps > step_before or before is None
            keep = not trained and before.training == run.training
            averaged = _averaged(run, settings, keep_existing=keep)
    return TrainResult(Path(settings.output_dir), steps, complete, averaged)


def resolved_hparams(settings: TrainSettings) -> HParams:
    """Return the hparams of a training: the set, its overrides, derived values.

    Raises:
        UsageError: If the set is unknown or an override is refused.
    """
    catalogue.load(settings.t2t_usr_dir)
    return catalogue.hparams(settings.hparams_set).parse(settings.hparams).resolved()


def check_run_folder(settings: TrainSettings, problem: str) -> None:
    """Create the folder of a run, or check that the run in it can be resumed.

    Call this before data is prepared; `train` also compares the data.

    Args:
        settings: Settings of the training.
        problem: Name of the problem.

    Raises:
        UserError: If the run in the folder has other settings or more steps.
    """
    output_dir = Path(settings.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    run = resumable_run(output_dir)
    if run is None:
        _check_batch_size(resolved_hparams(settings))
        return
    asked = dataclasses.replace(
        run,
        problem=problem,
        model=settings.model,
        hparams_set=settings.hparams_set,
        hparams=resolved_hparams(settings),
        random_seed=settings.random_seed,
    )
    run.check_resumable(asked, output_dir)
    step = latest_step(output_dir)
    if step > settings.train_steps:
        raise UsageError(
            f"received train_steps={settings.train_steps}, but the run in "
            f"{output_dir} is at step {step}: give more to train further, or leave it "
            "out."
        )


def _check_batch_size(hparams: HParams) -> None:
    """Refuse a batch that is smaller than one long sentence.

    Runs of earlier versions may have one, so only a new run is refused.

    Raises:
        UsageError: If `batch_size` is below `max_length`.
    """
    if hparams.batch_size < hparams.max_length:
        raise UsageError(
            f"received batch_size={hparams.batch_size}, expected at least max_length="
            f"{hparams.max_length} tokens: one long sentence must fit into a batch."
        )


def resumable_run(output_dir: Path) -> Run | None:
    """Return the run in a folder, or None if it has no checkpoint to resume from."""
    run = Run.load(output_dir)
    return run if run is not None and all_checkpoints(output_dir) else None


def latest_step(output_dir: str | Path) -> int:
    """Return the step of a run's newest checkpoint, or 0 without a checkpoint."""
    paths = all_checkpoints(output_dir)
    return step_of(paths[-1]) if paths else 0


def _begin_or_resume(
    settings: TrainSettings,
    hparams: HParams,
    data: PreparedData,
    strategy: tf.distribute.Strategy,
) -> Run:
    """Write the description of a run, after comparing it with the one to resume."""
    output_dir = Path(settings.output_dir)
    tokenizers = data.tokenizers()
    _check_sharing(hparams, *tokenizers)
    usr_dir = settings.t2t_usr_dir
    asked = Run(
        problem=data.problem.name,
        model=settings.model,
        hparams_set=settings.hparams_set,
        hparams=hparams,
        random_seed=settings.random_seed,
        num_replicas=strategy.num_replicas_in_sync,
        data_dir=str(data.folder.resolve()),
        data_digest=data.digest,
        usr_dir=None if usr_dir is None else str(Path(usr_dir).resolve()),
        tokenizers={},
        training=loop_settings(settings),
    )
    before = resumable_run(output_dir)
    if before is not None:
        before.check_same_tokenizers(output_dir, *tokenizers)
        before.check_resumable(asked, output_dir)
        # The data and the package may have moved.
        run = dataclasses.replace(
            before,
            training=asked.training,
            data_dir=asked.data_dir,
            usr_dir=asked.usr_dir,
        )
    else:
        for stale in (BEST_FOLDER, AVERAGED_FOLDER):
            shutil.rmtree(output_dir / stale, ignore_errors=True)
        names = save_tokenizers(output_dir, *tokenizers)
        run = dataclasses.replace(asked, tokenizers=names)
    run.save(output_dir)
    return run


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


def _averaged(run: Run, settings: TrainSettings, *, keep_existing: bool) -> str:
    """Average the last checkpoints, or as many as a short training has.

    Args:
        run: Description of the run.
        settings: Settings of the training.
        keep_existing: Whether an average of the last step is kept.
    """
    existing = all_checkpoints(Path(settings.output_dir) / AVERAGED_FOLDER)
    if keep_existing and existing and step_of(existing[-1]) == settings.train_steps:
        return existing[-1]
    paths = all_checkpoints(settings.output_dir)[-settings.average_last :]
    return average_paths(run, settings.output_dir, paths)
