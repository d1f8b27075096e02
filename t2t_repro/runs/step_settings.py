"""Choose the options of an update from hparams and settings."""

from __future__ import annotations

import tensorflow as tf

from t2t_repro.settings.hparams import HParams
from t2t_repro.training.setup import compiles_products, uses_xla
from t2t_repro.training.step_options import StepOptions
from t2t_repro.training.update_size import UpdateSize


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
