"""Fit a training run to its devices: XLA, and memory for its largest batch."""

from __future__ import annotations

import contextlib
import logging

import tensorflow as tf

from t2t_repro.data.batch_plan import BatchPlan, UpdateSize
from t2t_repro.data.prepared import PreparedData
from t2t_repro.machine import multiplies_bfloat16
from t2t_repro.models.estimates import fitting_batch_size, training_memory
from t2t_repro.progress import status
from t2t_repro.runs.training_config import TrainingConfig
from t2t_repro.settings.hparams import HParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text_tables import quantity
from t2t_repro.training.loop import Trainer
from t2t_repro.training.step import StepOptions
from t2t_repro.training.training_batches import largest_shape, try_largest_batch

logger = logging.getLogger(__name__)

# On a CPU, compiling a layer for another batch shape takes about as long as XLA saves
# while the layer is trained on this many values, tokens * hidden_size. Measured
# (docs/performance.md): 3e6 to 2e7 on an idle machine, 7e6 to 1e8 on a busy one.
VALUES_PER_COMPILED_SHAPE = 2**24
# Allocators lose some memory between blocks, and the estimate has an error.
USABLE = 0.9


def choose_xla(config: TrainingConfig, strategy: tf.distribute.Strategy) -> str:
    """Return the `xla` of a run that begins or is resumed.

    A compiled update rounds differently, so a resumed run keeps the choice that it
    began with, however many steps it has now.

    Args:
        config: The training run.
        strategy: The strategy of the replicas.

    Returns:
        `settings.xla`; instead of "auto", the recorded choice of the run to resume, or
        that of `choose_xla_of_new_run`.
    """
    settings, before = config.settings, config.resumed_run
    if settings.xla == "auto" and before is not None:
        settings = settings.replace(xla=before.training.get("xla", "auto"))
    return choose_xla_of_new_run(settings, config.hparams, strategy)


def choose_xla_of_new_run(
    settings: TrainSettings, hparams: HParams, strategy: tf.distribute.Strategy
) -> str:
    """Return the `xla` of a new run, with "auto" replaced by another value.

    The choice depends on counts, not on clocks, so that it is the same in every try.

    Args:
        settings: Settings of the training run.
        hparams: Resolved hparams.
        strategy: The strategy of the replicas.
    """
    if settings.xla != "auto":
        return settings.xla
    if not should_use_xla(strategy):
        return "off"
    if not _repays_compiling(settings.train_steps, hparams):
        logger.info(
            "XLA: off; %s would not pay back compiling %s (xla=on compiles)",
            quantity(settings.train_steps, "step"),
            quantity(_num_shapes(hparams), "batch shape"),
        )
        return "off"
    # XLA's products of bfloat16 do not use the processor's instructions for them;
    # TensorFlow's do (`all_but_products`).
    fast = hparams.activation_dtype == "bfloat16" and multiplies_bfloat16()
    return "fusible" if fast and not has_gpu() else "on"


def should_use_xla(strategy: tf.distribute.Strategy) -> bool:
    """Return whether XLA should compile training steps.

    Replicas on one CPU would wait for each other inside the compiled step. With fewer
    threads than replicas, they would wait forever.
    """
    return has_gpu() or strategy.num_replicas_in_sync == 1


def _repays_compiling(steps: int, hparams: HParams) -> bool:
    """Return whether XLA saves more time in updates than it takes to compile them."""
    tokens = hparams.update_tokens or hparams.batch_size
    values = steps * tokens * hparams.hidden_size
    return has_gpu() or values >= VALUES_PER_COMPILED_SHAPE * _num_shapes(hparams)


def _num_shapes(hparams: HParams) -> int:
    return len(BatchPlan.for_training(hparams).shapes)


def step_options(hparams: HParams, size: UpdateSize, xla: str) -> StepOptions:
    """Return the options of an update.

    Args:
        hparams: Hparams of the run.
        size: Size of an update.
        xla: "on", "fusible" (all but matrix products) or "off".
    """
    return StepOptions(
        label_smoothing=hparams.label_smoothing,
        rdrop_weight=hparams.rdrop_weight,
        rdrop_after_steps=hparams.rdrop_after_steps,
        clip_grad_norm=hparams.clip_grad_norm,
        jit_compile=xla != "off",
        jit_products=xla != "fusible",
        micro_batches=size.micro_batches,
    )


def check_memory(
    hparams: HParams, trainer: Trainer, data: PreparedData, size: UpdateSize
) -> None:
    """Try the largest batch, to show a lack of memory before training.

    Raises:
        OutOfMemoryError: If it does not fit; the message names a batch size that does.
    """
    source, target = data.tokenizers()
    sizes = (source.vocab_size, target.vocab_size)
    hparams = hparams.for_vocabularies(shared=source.same_ids(target))
    hparams = hparams.replace(batch_size=size.tokens)
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
    trainer.first_updates.add(length)  # the trial compiled it


def device_memory() -> int | None:
    """Return the bytes that TensorFlow may use on the smallest GPU, or None."""
    from tensorflow.python.client import device_lib

    gpus = [
        device.memory_limit
        for device in device_lib.list_local_devices()
        if device.device_type == "GPU"
    ]
    return min(gpus, default=None)


def memory_advice(
    hparams: HParams,
    vocab_sizes: tuple[int, int],
    available: int | None,
    micro_batches: int = 1,
) -> str:
    """Return advice on how to make the largest batch smaller.

    Args:
        hparams: Hparams of the model.
        vocab_sizes: Sizes of the source and target vocabulary.
        available: Bytes of one device, or None if they are not known.
        micro_batches: Micro-batches of the update that failed.

    Returns:
        One or two sentences with the largest `batch_size` that should fit. If even the
        one that failed should have fitted, they advise at most half of it.
    """
    length = hparams.packed_length or hparams.max_length
    batch_size = hparams.batch_size
    needed = training_memory(
        hparams,
        *vocab_sizes,
        rows=max(batch_size // length, 1),
        length=length,
        micro_batches=micro_batches,
    ).total
    half = batch_size // 2 // length * length
    fits = half
    if available is not None:
        fits = fitting_batch_size(hparams, *vocab_sizes, USABLE * available)
        if fits >= batch_size:
            fits = half
    has = "" if available is None else f" of {available / 1e9:.1f} GB"
    estimate = f"By estimate, batch_size={batch_size} needs {needed / 1e9:.1f} GB{has}"
    if fits < length:
        name = "packed_length" if hparams.packed_length else "max_length"
        return (
            f"{estimate}, and not even one row of {name}={length} tokens fits: "
            f"choose a shorter {name} or a smaller model."
        )
    return f"{estimate}; batch_size={fits} fits."


def has_gpu() -> bool:
    """Return whether TensorFlow computes on a GPU."""
    return bool(tf.config.get_visible_devices("GPU"))
