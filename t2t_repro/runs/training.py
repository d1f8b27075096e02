"""Train a model, or resume its training."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import keras
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data.pipeline import BatchPlan, evaluation_batches
from t2t_repro.data.prepared import PreparedData
from t2t_repro.decoding.translate import Translator
from t2t_repro.errors import UsageError
from t2t_repro.evaluation.branch_weights import branch_monitor
from t2t_repro.evaluation.development import (
    likelihood_evaluator,
    translation_evaluator,
)
from t2t_repro.files import folder_lock
from t2t_repro.runs.averaging import average_paths
from t2t_repro.runs.run import Run, loop_settings, save_tokenizers
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text import Tokenizer
from t2t_repro.training.checkpoints import (
    AVERAGED_FOLDER,
    all_checkpoints,
    step_of,
)
from t2t_repro.training.loop import (
    Evaluator,
    LoopOptions,
    Monitor,
    Trainer,
    TrainingData,
)
from t2t_repro.training.setup import (
    make_optimizer,
    make_repeatable,
    make_strategy,
    should_use_xla,
)
from t2t_repro.training.step import StepOptions
from t2t_repro.training.training_checkpoints import TrainingCheckpoints

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


def train(settings: TrainSettings, data: PreparedData) -> TrainResult:
    """Train a model, or resume its training, and average its last checkpoints.

    Args:
        settings: Model, folder and schedule of the training.
        data: Prepared data.

    Raises:
        UserError: If the folder holds another run, another process trains in it, the
            data cannot be trained on, or training diverges.
    """
    hparams = resolved_hparams(settings)
    check_run_folder(settings, data.problem.name)
    with folder_lock(Path(settings.output_dir), LOCK_FILE, "training"):
        strategy = make_strategy(settings.cpu_replicas)
        run = _begin_or_resume(settings, hparams, data, strategy)
        step_before = latest_step(settings.output_dir)
        trainer = _make_trainer(run, settings, data, strategy)
        steps = trainer.train()
        # A signal during the last update leaves out the last evaluation.
        complete = steps >= settings.train_steps and trainer.stop_signal is None
        averaged = _average(run, settings, step_before) if complete else None
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
            f"received --train_steps {settings.train_steps}, but the run in "
            f"{output_dir} is at step {step}: give more to train further, or leave it "
            "out."
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
        run = dataclasses.replace(before, training=asked.training)
    else:
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


def _make_trainer(
    run: Run,
    settings: TrainSettings,
    data: PreparedData,
    strategy: tf.distribute.Strategy,
) -> Trainer:
    hparams = run.hparams
    make_repeatable(settings.random_seed)
    with strategy.scope():
        model = run.build_model(*data.tokenizers())
        optimizer = make_optimizer(hparams)
        optimizer.build(model.trainable_variables)
    automatic = settings.xla == "auto"
    jit_compile = should_use_xla(strategy) if automatic else settings.xla == "on"
    training_data = TrainingData(
        data.shards("train"), _plan(hparams, strategy.num_replicas_in_sync)
    )
    _log_summary(run, data, model, training_data.plan, jit_compile)
    return Trainer(
        model=model,
        optimizer=optimizer,
        strategy=strategy,
        data=training_data,
        checkpoints=TrainingCheckpoints(
            settings.output_dir, model, optimizer, keep=settings.checkpoints_to_keep
        ),
        step_options=StepOptions(
            label_smoothing=hparams.label_smoothing,
            clip_grad_norm=hparams.clip_grad_norm,
            jit_compile=jit_compile,
        ),
        options=LoopOptions(
            train_steps=settings.train_steps,
            seed=settings.random_seed,
            log_every_steps=settings.log_step_count_steps,
            eval_every_steps=settings.steps_between_evaluations,
            save_every_steps=settings.steps_between_checkpoints,
            save_every_seconds=settings.save_checkpoints_secs,
            best_metric=data.problem.metric,
        ),
        evaluators=_evaluators(model, hparams, settings.eval_sentences, data),
        monitors=_monitors(model, hparams),
    )


def _plan(hparams: HParams, num_replicas: int) -> BatchPlan:
    return BatchPlan.from_token_budget(
        batch_size=hparams.batch_size,
        max_length=hparams.max_length,
        min_length_bucket=hparams.min_length_bucket,
        length_bucket_step=hparams.length_bucket_step,
        num_replicas=num_replicas,
    )


def _monitors(model: keras.Model, hparams: HParams) -> list[Monitor]:
    return [branch_monitor(model)] if hparams.branched_attention != "none" else []


def _evaluators(
    model: keras.Model, hparams: HParams, sentences: int, data: PreparedData
) -> list[Evaluator]:
    """Return the evaluators of the dev split, or none without a dev split."""
    if "dev" not in data.splits:
        return []
    batches = evaluation_batches(data.shards("dev"), _plan(hparams, 1))
    evaluators = [likelihood_evaluator(model, batches, jit_compile=False)]
    if sentences:
        evaluators.append(_translation_evaluator(model, hparams, sentences, data))
    return evaluators


def _translation_evaluator(
    model: keras.Model, hparams: HParams, sentences: int, data: PreparedData
) -> Evaluator:
    defaults = DecodeHParams()
    problem = data.problem
    # The problem's batch size is meant for its beam size.
    greedy = defaults.replace(**problem.decode_defaults).replace(
        beam_size=1, batch_size=defaults.batch_size
    )
    translator = Translator(
        model,
        *data.tokenizers(),
        greedy,
        hparams.max_length,
        normalize_source=problem.normalize_source,
        postprocess=problem.postprocess,
        jit_compile=False,
    )
    sources, references = (side[:sentences] for side in data.raw_text("dev"))
    return translation_evaluator(translator, sources, references, problem)


def _average(run: Run, settings: TrainSettings, step_before: int) -> str | None:
    """Average the last checkpoints, or as many as a short training has.

    An existing average stays if nothing was trained since.
    """
    if settings.average_last < 2:
        return None
    averaged = all_checkpoints(Path(settings.output_dir) / AVERAGED_FOLDER)
    if averaged and step_of(averaged[-1]) == step_before == settings.train_steps:
        return averaged[-1]
    paths = all_checkpoints(settings.output_dir)[-settings.average_last :]
    return average_paths(run, settings.output_dir, paths)


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
    for split, counts in data.manifest.splits.items():
        left_out = counts.longer_than(hparams.max_length)
        if left_out and split != "test":
            logger.warning(
                "%s: left out %d of %d pairs, which are longer than max_length=%d",
                split,
                left_out,
                counts.pairs_written,
                hparams.max_length,
            )
    shapes = zip(plan.rows, plan.boundaries, strict=True)
    logger.info(
        "%d replica(s), %d tokens per replica; %d batch shapes: %s%s",
        run.num_replicas,
        hparams.batch_size,
        len(plan.boundaries),
        ", ".join(f"{rows}x{length}" for rows, length in shapes),
        "; XLA compiles each once" if jit_compile else "",
    )
