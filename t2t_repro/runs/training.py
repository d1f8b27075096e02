"""Train a model, or resume its training."""

from __future__ import annotations

import dataclasses
import logging
import shutil
import tempfile
from pathlib import Path

import tensorflow as tf

from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UsageError
from t2t_repro.files import folder_lock
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.prepared_training import (
    PreparedTraining,
    settings_that_need_scores,
)
from t2t_repro.runs.run import Run, loop_settings, save_tokenizers
from t2t_repro.runs.run_checkpoints import average_paths, check_fits
from t2t_repro.runs.tensorboard import write_beginning, write_end
from t2t_repro.runs.trainer import decided_xla, has_gpu, make_trainer, try_memory
from t2t_repro.runs.warm_start import begin_with
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoint_paths import (
    AVERAGED_FOLDER,
    BEST_FOLDER,
    BEST_MODELS_FOLDER,
    all_checkpoints,
    latest_step,
    step_of,
)
from t2t_repro.training.checkpoints import write_averaged
from t2t_repro.training.cluster import Workers, errors_of_other_workers, make_strategy
from t2t_repro.training.loop import Trainer
from t2t_repro.training.metrics_file import event_files
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.training.optimizer import averaged_weights

logger = logging.getLogger(__name__)

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
    recorded = Run.load(settings.output_dir)
    training = PreparedTraining.of(settings, data.problem, recorded)
    return train_prepared(training, data, show_progress=show_progress)


def train_prepared(
    training: PreparedTraining, data: PreparedData, *, show_progress: bool = False
) -> TrainResult:
    """Do what `train` does with settings that are checked already."""
    settings = training.settings
    _check_for_dev_split(settings, data)
    strategy = make_strategy(settings.cpu_replicas, settings.cluster)
    workers = Workers(strategy)
    _check_for_workers(settings, workers)
    # Refuse it before the files of the run are replaced.
    training.update_size(strategy.num_replicas_in_sync)
    with errors_of_other_workers(workers):
        if workers.is_chief:
            with folder_lock(Path(settings.output_dir), LOCK_FILE, "training"):
                ready = _decided(training.now(), data, strategy)
                result = _train(ready, data, strategy, show_progress)
        else:
            result = _assist(_decided(training, data, strategy), data, strategy)
        # A worker that ends early would disturb the others.
        workers.wait_for_all()
    return result


def _decided(
    training: PreparedTraining, data: PreparedData, strategy: tf.distribute.Strategy
) -> PreparedTraining:
    """Return the training with what is decided when its data and devices are known."""
    training = training.with_chosen_tokenizer(data)
    return training.replace(xla=decided_xla(training, strategy))


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
    training: PreparedTraining, data: PreparedData, strategy: tf.distribute.Strategy
) -> TrainResult:
    """Train as a worker other than the chief, and keep no files.

    The metrics go to a temporary folder, as TensorFlow's guide to multi-worker training
    recommends; they are those of the chief.
    """
    settings = training.settings
    run = describe(settings, training.hparams, data, strategy.num_replicas_in_sync)
    with tempfile.TemporaryDirectory() as folder:
        log = MetricsLog(folder)
        trainer = make_trainer(training, run, data, strategy, log=log)
        _before_the_first_update(training, trainer, data)
        steps = trainer.train()
    complete = steps >= settings.train_steps and trainer.stop_signal is None
    output_dir = Path(settings.output_dir)
    return TrainResult(output_dir, steps, complete, None, trainer.stop_signal, False)


def _train(
    training: PreparedTraining,
    data: PreparedData,
    strategy: tf.distribute.Strategy,
    show_progress: bool,
) -> TrainResult:
    """Train as the only worker or the chief."""
    settings, before = training.settings, training.before
    run = begin_or_resume(training, data, strategy.num_replicas_in_sync)
    step_before = latest_step(settings.output_dir)
    trainer = make_trainer(training, run, data, strategy, show_progress=show_progress)
    _before_the_first_update(training, trainer, data)
    if before is None:
        write_beginning(trainer.log, run)
    steps = trainer.train()
    # A signal during the last update leaves out the last evaluation.
    reached = steps >= settings.train_steps or trainer.stopped_early
    complete = reached and trainer.stop_signal is None
    if complete and isinstance(trainer.model, Transformer):
        write_end(trainer.log, trainer.model, data.tokenizers())
    averaged = None
    if complete and (training.hparams.ema_decay or settings.average_last > 1):
        trained = steps > step_before or before is None
        changed = trained or before.training != run.training
        averaged = None if changed else _current_average(settings.output_dir)
        averaged = averaged or _average(trainer, run, settings)
    return TrainResult(
        Path(settings.output_dir), steps, complete, averaged, trainer.stop_signal
    )


def _before_the_first_update(
    training: PreparedTraining, trainer: Trainer, data: PreparedData
) -> None:
    """Take the weights of another run, and try the largest batch, on all workers."""
    settings = training.settings
    if training.before is not None:
        return
    if settings.warm_start_from is not None:
        begin_with(trainer.model, settings.warm_start_from, data.tokenizers())
    automatic = settings.try_largest_batch == "auto"
    if has_gpu() if automatic else settings.try_largest_batch == "on":
        try_memory(training, trainer, data)


def begin_or_resume(
    training: PreparedTraining, data: PreparedData, num_replicas: int
) -> Run:
    """Write the description of a run, after comparing it with the one to resume.

    Args:
        training: The training run.
        data: Prepared data.
        num_replicas: Number of replicas of all workers.

    Raises:
        UsageError: If the user asked for one vocabulary, and the data has two.
        UserError: If the folder holds another run, or its description asks for a much
            larger model than its checkpoint has.
    """
    settings, hparams, before = training.settings, training.hparams, training.before
    output_dir = Path(settings.output_dir)
    tokenizers = data.tokenizers()
    _check_sharing(hparams, *tokenizers)
    asked = describe(settings, hparams, data, num_replicas)
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
        if training.recorded is not None:
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
