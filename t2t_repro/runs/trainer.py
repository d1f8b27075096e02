"""Build the trainer of a run from its description, settings and data."""

from __future__ import annotations

import logging

import keras
import tensorflow as tf

from t2t_repro import registry
from t2t_repro.choices import SELF_ATTENTIONS
from t2t_repro.constants import EOS_ID, INPUTS, TARGETS
from t2t_repro.data.batch_plan import BatchPlan, shapes_text
from t2t_repro.data.pipeline import evaluation_batches, left_out_by_packing
from t2t_repro.data.prepared import PreparedData
from t2t_repro.decoding.problem_defaults import own_defaults
from t2t_repro.decoding.text_forms import TextForms
from t2t_repro.decoding.translate import Translator
from t2t_repro.errors import UserError
from t2t_repro.evaluation.branch_weights import branch_monitor, branch_values
from t2t_repro.evaluation.dev_sides import warn_of_unlikely_dev
from t2t_repro.evaluation.development import (
    likelihood_evaluator,
    translation_evaluator,
)
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.models.transformer import Transformer
from t2t_repro.runs.resuming import update_size
from t2t_repro.runs.run import Run
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.best_models import BestModels
from t2t_repro.training.data_errors import readable
from t2t_repro.training.loop import Trainer
from t2t_repro.training.loop_options import (
    Evaluator,
    LoopOptions,
    Monitor,
    TrainingData,
)
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.training.optimizer import make_optimizer
from t2t_repro.training.recovery import Recovery, RecoveryLimits
from t2t_repro.training.setup import make_repeatable, should_use_xla
from t2t_repro.training.step import StepOptions
from t2t_repro.training.training_checkpoints import (
    ReadOnlyCheckpoints,
    TrainingCheckpoints,
)
from t2t_repro.training.update_guard import UpdateGuard
from t2t_repro.training.workers import Workers
from t2t_repro.visualization.samples import attention_evaluator, sample_pairs
from t2t_repro.visualization.summaries import write_branches

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
        settings: Settings of the training.
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
    automatic = settings.xla == "auto"
    jit_compile = should_use_xla(strategy) if automatic else settings.xla == "on"
    size = update_size(hparams, strategy.num_replicas_in_sync)
    training_data = TrainingData(
        data.shards("train"),
        BatchPlan.for_training(hparams.replace(batch_size=size.tokens), size.parts),
    )
    _log_summary(run, data, model, training_data.plan, jit_compile)
    if hparams.rdrop_weight and settings.train_steps <= hparams.rdrop_after_steps:
        logger.warning(
            "no update has a second pass: received rdrop_after_steps=%d, expected "
            "fewer than train_steps=%d",
            hparams.rdrop_after_steps,
            settings.train_steps,
        )
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
    return Trainer(
        model=model,
        optimizer=optimizer,
        strategy=strategy,
        data=training_data,
        checkpoints=checkpoints,
        step_options=StepOptions(
            label_smoothing=hparams.label_smoothing,
            rdrop_weight=hparams.rdrop_weight,
            rdrop_after_steps=hparams.rdrop_after_steps,
            clip_grad_norm=hparams.clip_grad_norm,
            jit_compile=jit_compile,
            micro_steps=size.steps,
        ),
        options=_loop_options(settings, data.problem.metric),
        evaluators=_evaluators(model, hparams, settings, data) if is_chief else (),
        monitors=_monitors(model, hparams),
        recovery=_recovery(settings, guard, checkpoints),
        best_models=_best_models(model, settings) if is_chief else None,
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


def _guard(settings: TrainSettings) -> UpdateGuard | None:
    """Return the guard of the training step, or None if every update is made."""
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


def _evaluators(
    model: keras.Model, hparams: HParams, settings: TrainSettings, data: PreparedData
) -> list[Evaluator]:
    """Return the evaluators of the dev split, or none without a dev split."""
    if "dev" not in data.splits:
        return []
    batches = evaluation_batches(data.shards("dev"), BatchPlan.for_evaluation(hparams))
    evaluators = [likelihood_evaluator(model, batches)]
    sentences, samples = settings.eval_sentences, settings.attention_samples
    if sentences:
        evaluators.append(_translation_evaluator(model, hparams, sentences, data))
    # Only models of this class say what their attention layers are.
    if isinstance(model, Transformer) and samples:
        if _shows_attention(model, hparams.self_attention_type):
            evaluators.append(_attention_evaluator(model, hparams, samples, data))
        if hparams.branched_attention != "none":
            evaluators.append(_branch_evaluator(model))
    return evaluators


def _shows_attention(model: Transformer, name: str) -> bool:
    """Return whether attention weights can be captured, and log why not."""
    if name in SELF_ATTENTIONS:
        return True
    tokens = tf.constant([[EOS_ID, EOS_ID]])  # Keras warns of a softmax over one value.
    try:
        attention_weights(model, {INPUTS: tokens, TARGETS: tokens})
    except UserError as error:
        logger.warning("TensorBoard gets no attention: %s", error)
        return False
    return True


def _attention_evaluator(
    model: Transformer, hparams: HParams, samples: int, data: PreparedData
) -> Evaluator:
    tokenizers = data.tokenizers()
    pairs = sample_pairs(
        data.problem,
        tokenizers,
        *data.raw_text("dev"),
        count=samples,
        longest=hparams.max_length,
    )
    return attention_evaluator(model, tokenizers, pairs)


def _branch_evaluator(model: Transformer) -> Evaluator:
    """Make the evaluator that writes kappa and alpha for the tab of attention."""

    def evaluate(step: int, log: MetricsLog) -> dict[str, float]:
        write_branches(log, step, branch_values(model))
        return {}

    return evaluate


def _translation_evaluator(
    model: keras.Model, hparams: HParams, sentences: int, data: PreparedData
) -> Evaluator:
    defaults = DecodeHParams()
    problem = data.problem
    own = defaults.replace(**own_defaults(problem))
    # The problem's batch size is meant for its beam size.
    greedy = own.replace(beam_size=1, batch_size=defaults.batch_size)
    tokenizers = data.tokenizers()
    translator = Translator(
        model,
        *tokenizers,
        greedy,
        hparams.max_length,
        forms=TextForms.of(problem),
        grammar=problem.target_grammar(tokenizers[1]),
    )
    sources, references = (side[:sentences] for side in data.raw_text("dev"))
    logger.info(
        "%s during training: %d dev sentences, greedy search; decoding uses "
        "beam_size=%d and usually scores higher",
        problem.metric,
        len(sources),
        own.beam_size,
    )
    return translation_evaluator(translator, sources, references, problem)


def _log_summary(
    run: Run, data: PreparedData, model: keras.Model, plan: BatchPlan, jit_compile: bool
) -> None:
    """Log the model, the data left out, and the shapes of the batches."""
    hparams = run.hparams
    logger.info(
        "%s on %s: %s parameters",
        run.hparams_set,
        run.problem,
        f"{model.count_params():,}",
    )
    _log_left_out(data, hparams.max_length, plan)
    source_length, length = plan.packed_lengths
    logger.info(
        "%d batch shapes, rows x length: %s%s%s",
        len(plan.shapes),
        shapes_text(plan.shapes),
        f" (of sources: {source_length})" if source_length < length else "",
        "; XLA compiles each once" if jit_compile else "",
    )


def _log_left_out(data: PreparedData, max_length: int, plan: BatchPlan) -> None:
    for split, counts in data.manifest.splits.items():
        left_out = counts.longer_than(max_length)
        if left_out and split != "test":
            logger.warning(
                "%s: left out %d of %d pairs, which are longer than max_length=%d",
                split,
                left_out,
                counts.pairs_written,
                max_length,
            )
    if not plan.packed_length or plan.packed_lengths[0] >= plan.boundaries[-1]:
        return
    pairs = left_out_by_packing(data.shards("train"), plan)
    left_out = sum(1 for _ in readable(pairs, lambda: 0))
    if left_out:
        logger.warning(
            "train: left out %d more pairs, whose sources are longer than "
            "packed_source_length=%d",
            left_out,
            plan.packed_source_length,
        )
