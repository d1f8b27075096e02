"""Choose the options of an update from hparams and settings."""

from __future__ import annotations

import logging

import tensorflow as tf

from t2t_repro.data.batch_plan import BatchPlan
from t2t_repro.runs.memory_advice import has_gpu
from t2t_repro.runs.resuming import resumable_run
from t2t_repro.runs.run import Run
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text_tables import quantity
from t2t_repro.training.checkpoint_paths import latest_step
from t2t_repro.training.step import StepOptions, compiles_products, uses_xla
from t2t_repro.training.update_size import UpdateSize

logger = logging.getLogger(__name__)

# On a CPU, compiling a layer for another batch shape takes about as long as XLA saves
# while the layer is trained on this many values, tokens * hidden_size. Measured
# (docs/performance.md): 3e6 to 2e7 on an idle machine, 7e6 to 1e8 on a busy one.
VALUES_PER_COMPILED_SHAPE = 2**24


def decided_xla(
    settings: TrainSettings, hparams: HParams, strategy: tf.distribute.Strategy
) -> str:
    """Return the `xla` of a run that begins or is resumed.

    A compiled update rounds differently, so a resumed run keeps the choice that it
    began with, however many steps it has now.

    Args:
        settings: Settings of the training run.
        hparams: Resolved hparams.
        strategy: The strategy of the replicas.

    Returns:
        `settings.xla`; instead of "auto", the recorded choice of the run to resume, or
        `chosen_xla` for a new run. Earlier versions recorded "auto", by which short
        runs were compiled, too.
    """
    before = resumable_run(settings.output_dir)
    if before is None:
        return chosen_xla(settings, hparams, strategy)
    xla = settings.xla
    if xla == "auto":
        xla = before.training.get("xla", "auto")
    if xla == "off" and uses_xla("auto", strategy):
        _advise_compiling(settings, hparams, before)
    return xla


def chosen_xla(
    settings: TrainSettings, hparams: HParams, strategy: tf.distribute.Strategy
) -> str:
    """Return the `xla` of a new run: instead of "auto", one of the other values.

    The choice depends on counts, not on clocks, so that it is the same in every try.

    Args:
        settings: Settings of the training run.
        hparams: Resolved hparams.
        strategy: The strategy of the replicas.
    """
    if settings.xla != "auto":
        return settings.xla
    if not uses_xla("auto", strategy):
        return "off"
    if not _repays_compiling(settings.train_steps, hparams):
        logger.info(
            "XLA: off; %s would not pay back compiling %s (xla=on compiles)",
            quantity(settings.train_steps, "step"),
            quantity(_num_shapes(hparams), "batch shape"),
        )
        return "off"
    return "on" if compiles_products("auto", hparams.activation_dtype) else "fusible"


def _advise_compiling(settings: TrainSettings, hparams: HParams, before: Run) -> None:
    """Log that a short run has become long enough for XLA."""
    remaining = settings.train_steps - latest_step(settings.output_dir)
    was_short = not _repays_compiling(before.training.get("train_steps", 0), hparams)
    if was_short and _repays_compiling(remaining, hparams):
        logger.info(
            "XLA: off, as this run began; %s would pay back compiling %s (xla=on "
            "compiles)",
            quantity(remaining, "more step"),
            quantity(_num_shapes(hparams), "batch shape"),
        )


def _repays_compiling(steps: int, hparams: HParams) -> bool:
    """Return whether XLA saves more time in updates than it takes to compile them."""
    tokens = hparams.update_tokens or hparams.batch_size
    values = steps * tokens * hparams.hidden_size
    return has_gpu() or values >= VALUES_PER_COMPILED_SHAPE * _num_shapes(hparams)


def _num_shapes(hparams: HParams) -> int:
    return len(BatchPlan.for_training(hparams).shapes)


def step_options(
    hparams: HParams, size: UpdateSize, xla: str, strategy: tf.distribute.Strategy
) -> StepOptions:
    """Return the options of an update.

    Args:
        hparams: Hparams of the run.
        size: Size of an update.
        xla: The setting `xla`; see `uses_xla` and `compiles_products`.
        strategy: The strategy of the replicas.
    """
    return StepOptions(
        label_smoothing=hparams.label_smoothing,
        rdrop_weight=hparams.rdrop_weight,
        rdrop_after_steps=hparams.rdrop_after_steps,
        clip_grad_norm=hparams.clip_grad_norm,
        jit_compile=uses_xla(xla, strategy),
        jit_products=compiles_products(xla, hparams.activation_dtype),
        micro_batches=size.micro_batches,
    )
