"""Train a model, or resume its training."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from pathlib import Path

import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UsageError
from t2t_repro.files import folder_lock
from t2t_repro.models.transformer import Transformer
from t2t_repro.progress import status
from t2t_repro.runs.bleu_tokenizer import with_chosen_tokenizer
from t2t_repro.runs.describing import begin_or_resume, describe
from t2t_repro.runs.memory_advice import device_memory, has_gpu, memory_advice
from t2t_repro.runs.resuming import (
    check_run_folder,
    checked_search,
    resolved_hparams,
    resumable_run,
    settings_that_need_scores,
    update_size,
)
from t2t_repro.runs.run import Run
from t2t_repro.runs.run_checkpoints import average_paths
from t2t_repro.runs.step_settings import decided_xla
from t2t_repro.runs.tensorboard import write_beginning, write_end
from t2t_repro.runs.trainer import make_trainer
from t2t_repro.runs.warm_start import begin_with, with_absolute_source
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import (
    AVERAGED_FOLDER,
    all_checkpoints,
    latest_step,
    step_of,
)
from t2t_repro.training.checkpoints import write_averaged
from t2t_repro.training.cluster import Workers, errors_of_other_workers, make_strategy
from t2t_repro.training.loop import Trainer
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.training.optimizer import averaged_weights
from t2t_repro.training.training_batches import largest_shape, try_largest_batch

LOCK_FILE = ".training.lock"


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """Outcome of a training run.

    Attributes:
        output_dir: Folder of the run.
        steps: Number of completed updates.
        complete: Whether training reached its last step or stopped early; False after
            a signal to stop.
        averaged: Path of the averaged checkpoint, or None.
        stop_signal: Number of the signal that stopped training, or None.
        is_chief: Whether this process wrote the files of the run; of several workers,
            only the chief does.
    """

    output_dir: Path
    steps: int
    complete: bool
    averaged: str | None
    stop_signal: int | None = None
    is_chief: bool = True


def train(
    settings: TrainSettings, data: PreparedData, *, show_progress: bool = False
) -> TrainResult:
    """Train a model, or resume its training, and average its last checkpoints.

    Args:
        settings: Model, folder and schedule of the training run.
        data: Prepared data.
        show_progress: Whether to draw a progress bar if standard error is a terminal.

    Raises:
        UsageError: If settings contradict each other, the data or the number of
            workers.
        UserError: If the folder holds another run, another process trains in it, the
            data cannot be trained on, or training diverges.
        LostWorkerError: If another worker has stopped or cannot be reached.
    """
    settings = with_absolute_source(settings)
    hparams = resolved_hparams(settings)
    # A problem that nobody can find again could never be loaded.
    catalogue.problem(data.problem.name)
    # Refuse it before hours of training, not after them.
    checked_search(settings, data.problem)
    check_run_folder(settings, data.problem.name)
    _check_for_dev_split(settings, data)
    before = resumable_run(Path(settings.output_dir))
    settings = with_chosen_tokenizer(settings, data, before)
    strategy = make_strategy(settings.cpu_replicas, settings.cluster)
    workers = Workers(strategy)
    _check_for_workers(settings, workers)
    # Refuse it before the files of the run are replaced.
    update_size(hparams, strategy.num_replicas_in_sync)
    settings = settings.replace(xla=decided_xla(settings, hparams, strategy))
    with errors_of_other_workers(workers):
        if workers.is_chief:
            result = _train(settings, hparams, data, strategy, show_progress)
        else:
            result = _assist(settings, hparams, data, strategy)
        # A worker that ends early would disturb the others.
        workers.wait_for_all()
    return result


def _check_for_dev_split(settings: TrainSettings, data: PreparedData) -> None:
    """Refuse settings that need scores if nothing can be scored.

    Raises:
        UsageError: If there is one, and the data has no dev split.
    """
    for name in [] if "dev" in data.splits else settings_that_need_scores(settings):
        raise UsageError(
            f"received {name}={getattr(settings, name)} and data without a dev split, "
            "whose scores it needs: leave it out, or prepare the data with dev text."
        )


def _check_for_workers(settings: TrainSettings, workers: Workers) -> None:
    """Refuse what several workers could not decide alike.

    Raises:
        UsageError: If a setting needs the clock or the evaluations of one worker.
    """
    if workers.count == 1:
        return
    alone = {
        "save_checkpoints_secs": "give save_checkpoints_steps instead",
        "early_stopping_patience": "only the chief evaluates",
    }
    for name, reason in alone.items():
        if getattr(settings, name):
            raise UsageError(
                f"received {name}={getattr(settings, name)} and {workers.count} "
                f"workers, which must do the same at the same step: {reason}."
            )


def _assist(
    settings: TrainSettings,
    hparams: HParams,
    data: PreparedData,
    strategy: tf.distribute.Strategy,
) -> TrainResult:
    """Train as a worker other than the chief, and keep no files.

    The metrics go to a temporary folder, as TensorFlow's guide to multi-worker training
    recommends; they are those of the chief.
    """
    run = describe(settings, hparams, data, strategy.num_replicas_in_sync)
    is_new = resumable_run(Path(settings.output_dir)) is None
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(run, settings, data, strategy, log=MetricsLog(folder))
        if is_new:
            _before_the_first_update(trainer, run, settings, data)
        steps = trainer.train()
    complete = steps >= settings.train_steps and trainer.stop_signal is None
    output_dir = Path(settings.output_dir)
    return TrainResult(output_dir, steps, complete, None, trainer.stop_signal, False)


def _train(
    settings: TrainSettings,
    hparams: HParams,
    data: PreparedData,
    strategy: tf.distribute.Strategy,
    show_progress: bool,
) -> TrainResult:
    """Train as the only worker or the chief."""
    with folder_lock(Path(settings.output_dir), LOCK_FILE, "training"):
        before = resumable_run(Path(settings.output_dir))
        replicas = strategy.num_replicas_in_sync
        run = begin_or_resume(settings, hparams, data, replicas)
        step_before = latest_step(settings.output_dir)
        trainer = make_trainer(
            run, settings, data, strategy, show_progress=show_progress
        )
        if before is None:
            _before_the_first_update(trainer, run, settings, data)
            write_beginning(trainer.log, run)
        steps = trainer.train()
        # A signal during the last update leaves out the last evaluation.
        reached = steps >= settings.train_steps or trainer.stopped_early
        complete = reached and trainer.stop_signal is None
        if complete and isinstance(trainer.model, Transformer):
            write_end(trainer.log, trainer.model, data.tokenizers())
        averaged = None
        if complete and (hparams.ema_decay or settings.average_last > 1):
            trained = steps > step_before or before is None
            changed = trained or before.training != run.training
            averaged = None if changed else _current_average(settings.output_dir)
            averaged = averaged or _average(trainer, run, settings)
    return TrainResult(
        Path(settings.output_dir), steps, complete, averaged, trainer.stop_signal
    )


def _before_the_first_update(
    trainer: Trainer, run: Run, settings: TrainSettings, data: PreparedData
) -> None:
    """Take the weights of another run, and try the largest batch, on all workers."""
    if settings.warm_start_from is not None:
        begin_with(trainer.model, settings.warm_start_from, data.tokenizers())
    if _tries_largest_batch(settings):
        _try_largest_batch(trainer, run.hparams, data)


def _tries_largest_batch(settings: TrainSettings) -> bool:
    automatic = settings.try_largest_batch == "auto"
    return has_gpu() if automatic else settings.try_largest_batch == "on"


def _try_largest_batch(trainer: Trainer, hparams: HParams, data: PreparedData) -> None:
    """Run out of memory before training if its largest batch would.

    Raises:
        OutOfMemoryError: If it does; the message names a batch size that fits.
    """
    size = update_size(hparams, trainer.strategy.num_replicas_in_sync)
    hparams = hparams.replace(batch_size=size.tokens)
    source, target = data.tokenizers()
    sizes = (source.vocab_size, target.vocab_size)
    if source is not target:
        hparams = hparams.replace(shared_embedding_and_softmax_weights=False)
    shown = trainer.show_progress
    with status("trying the largest batch") if shown else contextlib.nullcontext():
        try_largest_batch(
            trainer.train_step,
            trainer.batches.data.plan,
            trainer.strategy,
            trainer.checkpoints.variables,
            advice=lambda: memory_advice(
                hparams, sizes, device_memory(), size.micro_batches
            ),
            # Later updates have two passes.
            prepare=lambda: trainer.optimizer.iterations.assign(
                hparams.rdrop_after_steps
            ),
        )
    _, length = largest_shape(trainer.batches.data.plan)
    trainer.first_updates.add(length)  # it is compiled now


def _average(trainer: Trainer, run: Run, settings: TrainSettings) -> str:
    """Write the average that the settings ask for, and return its path.

    It is the moving average of the weights, or that of the last checkpoints, or of as
    many as a short training has.
    """
    if run.hparams.ema_decay:
        with averaged_weights(trainer.model, trainer.optimizer):
            return write_averaged(trainer.model, settings.output_dir, trainer.step)
    paths = all_checkpoints(settings.output_dir)[-settings.average_last :]
    return average_paths(run, settings.output_dir, paths)


def _current_average(output_dir: str) -> str | None:
    """Return the path of an average to keep, or None."""
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
