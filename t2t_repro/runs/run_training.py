"""Train a model, or resume its training."""

from __future__ import annotations

import dataclasses
import logging
import tempfile
from pathlib import Path

import keras
import tensorflow as tf

from t2t_repro import registry
from t2t_repro.constants import SELF_ATTENTIONS
from t2t_repro.data.batch_plan import BatchPlan, UpdateSize
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import folder_lock
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.branch_weights import branch_monitor
from t2t_repro.runs.devices import check_memory, choose_xla, has_gpu, step_options
from t2t_repro.runs.evaluators import TrainingContext, make_evaluators, make_monitors
from t2t_repro.runs.resuming import begin_or_resume
from t2t_repro.runs.run import Run, describe_run
from t2t_repro.runs.run_checkpoints import average_paths, current_average
from t2t_repro.runs.tensorboard import write_beginning, write_end
from t2t_repro.runs.training_config import TrainingConfig
from t2t_repro.runs.training_summary import log_summary, warn_of_unlikely_dev
from t2t_repro.runs.warm_start import begin_with
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import all_checkpoints, latest_step
from t2t_repro.training.checkpoints import write_averaged
from t2t_repro.training.cluster import (
    Workers,
    errors_of_other_workers,
    make_repeatable,
    make_strategy,
)
from t2t_repro.training.loop import Trainer
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.training.optimizer import averaged_weights, make_optimizer
from t2t_repro.training.training_batches import TrainingData

logger = logging.getLogger(__name__)

TRAINING_LOCK = ".training.lock"


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
    config = TrainingConfig.from_settings(settings, data.problem)
    return run_training(config, data, show_progress=show_progress)


def run_training(
    config: TrainingConfig, data: PreparedData, *, show_progress: bool = False
) -> TrainResult:
    """Train as `train` does, with settings that are already checked."""
    settings = config.settings
    config.check_splits(data)
    strategy = make_strategy(settings.cpu_replicas, settings.cluster)
    workers = Workers(strategy)
    _check_for_workers(settings, workers)
    # It can be refused, so it is planned before the files of the run are replaced.
    size = UpdateSize.of(config.hparams, strategy.num_replicas_in_sync)
    with errors_of_other_workers(workers):
        if workers.is_chief:
            with folder_lock(Path(settings.output_dir), TRAINING_LOCK, "training"):
                ready = _resolve_for_devices(config.reloaded(), data, strategy)
                result = _train_as_chief(ready, data, strategy, size, show_progress)
        else:
            ready = _resolve_for_devices(config, data, strategy)
            result = _train_as_worker(ready, data, strategy, size)
        # A worker must not end while others still communicate with it.
        workers.wait_for_all()
    return result


def _resolve_for_devices(
    config: TrainingConfig, data: PreparedData, strategy: tf.distribute.Strategy
) -> TrainingConfig:
    """Return the training with the settings that depend on its data and devices."""
    config = config.with_bleu_tokenizer(data)
    return config.replace(xla=choose_xla(config, strategy))


def _check_for_workers(settings: TrainSettings, workers: Workers) -> None:
    """Refuse settings that several workers could apply differently.

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


def _train_as_worker(
    config: TrainingConfig,
    data: PreparedData,
    strategy: tf.distribute.Strategy,
    size: UpdateSize,
) -> TrainResult:
    """Train as a worker other than the chief, and keep no files.

    The metrics go to a temporary folder, as TensorFlow's guide to multi-worker training
    recommends; they are those of the chief.
    """
    settings = config.settings
    replicas = strategy.num_replicas_in_sync
    run = describe_run(settings, config.hparams, data.problem.name, data, replicas)
    with tempfile.TemporaryDirectory() as folder:
        log = MetricsLog(folder)
        trainer = make_trainer(config, run, data, strategy, size, log=log)
        _prepare_first_update(config, trainer, data, size)
        steps = trainer.train()
    complete = steps >= settings.train_steps and trainer.stop_signal is None
    output_dir = Path(settings.output_dir)
    return TrainResult(output_dir, steps, complete, None, trainer.stop_signal, False)


def _train_as_chief(
    config: TrainingConfig,
    data: PreparedData,
    strategy: tf.distribute.Strategy,
    size: UpdateSize,
    show_progress: bool,
) -> TrainResult:
    """Train as the only worker or the chief."""
    settings, before = config.settings, config.resumed_run
    run = begin_or_resume(config, data, strategy.num_replicas_in_sync)
    step_before = latest_step(settings.output_dir)
    trainer = make_trainer(
        config, run, data, strategy, size, show_progress=show_progress
    )
    _prepare_first_update(config, trainer, data, size)
    if before is None:
        write_beginning(trainer.log, run)
    steps = trainer.train()
    # A signal during the last update leaves out the last evaluation.
    reached = steps >= settings.train_steps or trainer.stopped_early
    complete = reached and trainer.stop_signal is None
    if complete and isinstance(trainer.model, Transformer):
        write_end(trainer.log, trainer.model, data.tokenizers())
    averaged = None
    if complete and (config.hparams.ema_decay or settings.average_last > 1):
        trained = steps > step_before or before is None
        changed = trained or before.training != run.training
        averaged = None if changed else current_average(settings.output_dir)
        averaged = averaged or _average(trainer, run, settings)
    return TrainResult(
        Path(settings.output_dir), steps, complete, averaged, trainer.stop_signal
    )


def _prepare_first_update(
    config: TrainingConfig, trainer: Trainer, data: PreparedData, size: UpdateSize
) -> None:
    """Take the weights of another run, and try the largest batch, on all workers."""
    settings = config.settings
    if config.resumed_run is not None:
        return
    if settings.warm_start_from is not None:
        begin_with(trainer.model, settings.warm_start_from, data.tokenizers())
    automatic = settings.try_largest_batch == "auto"
    if has_gpu() if automatic else settings.try_largest_batch == "on":
        check_memory(config.hparams, trainer, data, size)


def make_trainer(
    config: TrainingConfig,
    run: Run,
    data: PreparedData,
    strategy: tf.distribute.Strategy,
    size: UpdateSize,
    *,
    log: MetricsLog | None = None,
    show_progress: bool = False,
) -> Trainer:
    """Build the model, the optimizer and everything that trains them.

    Args:
        config: The training run.
        run: Description of the run.
        data: Prepared data.
        strategy: Strategy that distributes the replicas.
        size: Size of an update on these replicas.
        log: Receives the metrics; None = a log in the folder of the run.
        show_progress: Whether to draw a progress bar if standard error is a terminal.

    Raises:
        UserError: If a registered attention does not build its projections.
    """
    settings, hparams = config.settings, config.hparams
    make_repeatable(settings.random_seed, deterministic=settings.deterministic)
    with strategy.scope():
        model, optimizer = _make_model_and_optimizer(run, data, settings.train_steps)
    options = step_options(hparams, size, settings.xla)
    plan = BatchPlan.for_training(hparams.replace(batch_size=size.tokens), size.parts)
    log_summary(run, data, model, plan, options.jit_compile)
    _warn_of_one_pass(hparams, settings.train_steps)
    logger.info("an update: %s", size)
    warn_of_unlikely_dev(data)
    context = TrainingContext(model, hparams, settings, data)
    is_chief = Workers(strategy).is_chief
    log = log or MetricsLog(settings.output_dir)
    if is_chief:
        log.monitors += make_monitors(context)
    if hparams.branched_attention != "none":
        log.monitors.append(branch_monitor(model, log))
    return Trainer(
        settings=settings,
        model=model,
        optimizer=optimizer,
        strategy=strategy,
        data=TrainingData(data.shards("train"), plan),
        step_options=options,
        metric=data.problem.metric,
        evaluators=make_evaluators(context) if is_chief else (),
        log=log,
        show_progress=show_progress,
    )


def _make_model_and_optimizer(
    run: Run, data: PreparedData, train_steps: int
) -> tuple[keras.Model, keras.optimizers.Optimizer]:
    model = run.build_model(*data.tokenizers())
    _check_attention(model, run.hparams.self_attention_type)
    if run.hparams.packed_length and not isinstance(model, Transformer):
        raise UserError(
            f"received packed_length={run.hparams.packed_length} for the model "
            f"{run.model}, expected 0: only `Transformer` and its subclasses keep the "
            "pairs of a row apart."
        )
    optimizer = make_optimizer(run.hparams, train_steps)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def _check_attention(model: keras.Model, name: str) -> None:
    """Refuse an attention of a user's package that does not build its projections.

    They would get their weights in the first update, unknown to the optimizer.
    """
    if name in SELF_ATTENTIONS or not isinstance(model, Transformer):
        return
    for layer in (*model.encoder.layers, *model.decoder.layers):
        if not layer.self_attention.query_projection.built:
            raise UserError(
                f"the attention {name} (registered at "
                f"{registry.attentions.entry(name).location}) has projections without "
                "weights: its `build` must call `super().build(input_shape)`."
            )


def _warn_of_one_pass(hparams: HParams, train_steps: int) -> None:
    """Log that R-Drop would begin after the end of the training run."""
    if hparams.rdrop_weight and train_steps <= hparams.rdrop_after_steps:
        logger.warning(
            "no update has a second pass: received rdrop_after_steps=%d, expected "
            "fewer than train_steps=%d",
            hparams.rdrop_after_steps,
            train_steps,
        )


def _average(trainer: Trainer, run: Run, settings: TrainSettings) -> str:
    """Write the average that the settings ask for, and return its path.

    It is the moving average of the weights, or the average of the last checkpoints, of
    which a short training run may have fewer.
    """
    if run.hparams.ema_decay:
        with averaged_weights(trainer.model, trainer.optimizer):
            return write_averaged(trainer.model, settings.output_dir, trainer.step)
    paths = all_checkpoints(settings.output_dir)[-settings.average_last :]
    return average_paths(run, settings.output_dir, paths)
