"""Build the trainer of a run from its description, settings and data."""

from __future__ import annotations

import logging

import keras
import tensorflow as tf

from t2t_repro import registry
from t2t_repro.choices import SELF_ATTENTIONS
from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.evaluators import (
    Training,
    branch_monitor,
    make_evaluators,
    make_listeners,
)
from t2t_repro.runs.resuming import update_size
from t2t_repro.runs.run import Run
from t2t_repro.runs.step_settings import step_options
from t2t_repro.runs.training_summary import log_summary, warn_of_unlikely_dev
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.cluster import Workers, make_repeatable
from t2t_repro.training.evaluations import LoopOptions
from t2t_repro.training.loop import Trainer
from t2t_repro.training.metrics_log import MetricsLog, Monitor
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.recovery import Recovery, RecoveryLimits, UpdateGuard
from t2t_repro.training.training_batches import TrainingData
from t2t_repro.training.training_checkpoints import (
    BestModels,
    ReadOnlyCheckpoints,
    TrainingCheckpoints,
)

logger = logging.getLogger(__name__)


def make_trainer(
    run: Run,
    settings: TrainSettings,
    data: PreparedData,
    strategy: tf.distribute.Strategy,
    *,
    log: MetricsLog | None = None,
    show_progress: bool = False,
) -> Trainer:
    """Build the model, the optimizer and everything that trains them.

    Args:
        run: Description of the run, with its hparams.
        settings: Settings of the training run.
        data: Prepared data.
        strategy: Strategy that distributes the replicas.
        log: Receives the metrics; None = a log in the folder of the run.
        show_progress: Whether to draw a progress bar if standard error is a terminal.

    Raises:
        UserError: If a registered attention does not build its projections.
    """
    hparams = run.hparams
    make_repeatable(settings.random_seed, deterministic=settings.deterministic)
    with strategy.scope():
        model, optimizer = _make_model_and_optimizer(run, data, settings.train_steps)
    size = update_size(hparams, strategy.num_replicas_in_sync)
    options = step_options(hparams, size, settings.xla, strategy)
    training_data = TrainingData(
        data.shards("train"),
        BatchPlan.for_training(hparams.replace(batch_size=size.tokens), size.parts),
    )
    log_summary(run, data, model, training_data.plan, options.jit_compile)
    _warn_of_one_pass(hparams, settings.train_steps)
    logger.info("an update: %s", size)
    warn_of_unlikely_dev(data)
    guard = _guard(settings)
    is_chief = Workers(strategy).is_chief
    kind = TrainingCheckpoints if is_chief else ReadOnlyCheckpoints
    checkpoints = kind(
        settings.output_dir,
        model,
        optimizer,
        settings.checkpoints_to_keep,
        guard,
        settings.steps_between_checkpoints,
    )
    training = Training(model, hparams, settings, data)
    log = log or MetricsLog(settings.output_dir)
    if is_chief:
        log.listeners += make_listeners(training)
    return Trainer(
        model=model,
        optimizer=optimizer,
        strategy=strategy,
        data=training_data,
        checkpoints=checkpoints,
        step_options=options,
        options=_loop_options(settings, data.problem.metric),
        evaluators=make_evaluators(training) if is_chief else (),
        monitors=_monitors(model, hparams),
        recovery=_recovery(settings, guard, checkpoints),
        best_models=_best_models(model, settings) if is_chief else None,
        log=log,
        show_progress=show_progress,
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


def _guard(settings: TrainSettings) -> UpdateGuard | None:
    """Return the guard of the training step, or None if every update is applied."""
    if not settings.max_skipped_updates:
        return None
    return UpdateGuard(settings.spike_factor)


def _recovery(
    settings: TrainSettings, guard: UpdateGuard | None, checkpoints: TrainingCheckpoints
) -> Recovery | None:
    if guard is None:
        return None
    limits = RecoveryLimits(settings.max_skipped_updates, settings.max_rollbacks)
    return Recovery(guard, checkpoints, limits)


def _best_models(model: keras.Model, settings: TrainSettings) -> BestModels | None:
    """Return the keeper of several models; `best` holds a single one."""
    if settings.keep_best == 1:
        return None
    return BestModels(settings.output_dir, model, settings.keep_best)


def _loop_options(settings: TrainSettings, best_metric: str) -> LoopOptions:
    return LoopOptions(
        train_steps=settings.train_steps,
        seed=settings.random_seed,
        log_every_steps=settings.log_step_count_steps,
        eval_every_steps=settings.steps_between_evaluations,
        save_every_steps=settings.steps_between_checkpoints,
        save_every_seconds=settings.save_checkpoints_secs,
        best_metric=best_metric,
        patience=settings.early_stopping_patience,
    )


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
                "weights: its `build` must call `super().build()`."
            )


def _monitors(model: keras.Model, hparams: HParams) -> list[Monitor]:
    return [branch_monitor(model)] if hparams.branched_attention != "none" else []
