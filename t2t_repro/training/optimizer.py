"""The optimizer and its learning rates; imports no TensorFlow."""

from __future__ import annotations

import keras

from t2t_repro.settings.hparams import HParams
from t2t_repro.training.schedules import FactorSchedule, FrozenSchedule

# Paths of the Weighted Transformer's kappa and alpha.
BRANCH_WEIGHT_PATHS = ".*/(kappa|alpha)"


def make_schedule(hparams: HParams, train_steps: int = 0) -> FactorSchedule:
    """Make the learning-rate schedule of the hparams; see `make_optimizer`."""
    return FactorSchedule(
        hparams.learning_rate_schedule,
        constant=hparams.learning_rate_constant,
        warmup_steps=hparams.learning_rate_warmup_steps,
        hidden_size=hparams.hidden_size,
        decay_steps=hparams.learning_rate_decay_steps,
        train_steps=train_steps,
    )


def make_branch_schedule(hparams: HParams) -> FrozenSchedule:
    """Make the schedule of kappa and alpha (Weighted Transformer, section 4.1).

    c (d_model / N)^-0.5 min(t^-0.5, t w^-1.5), and zero after
    `branch_frozen_after_steps`: the plain schedule times sqrt(N), with a warm-up w of
    400. N is the number of layers of the encoder or the decoder, whichever has more.
    c is `branch_learning_rate_constant`, 1 in the paper. Where another
    `learning_rate_constant` than the paper's 1 trains the rest, the same value here
    keeps the paper's ratio of the two rates.
    """
    h = hparams.resolved()
    layers = max(h.num_encoder_layers, h.num_decoder_layers)
    schedule = FactorSchedule(
        "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
        constant=h.branch_learning_rate_constant * layers**0.5,
        warmup_steps=h.branch_learning_rate_warmup_steps,
        hidden_size=h.hidden_size,
    )
    return FrozenSchedule(schedule, h.branch_frozen_after_steps)


def make_optimizer(
    hparams: HParams, train_steps: int = 0
) -> keras.optimizers.Optimizer:
    """Make Adam with the schedule of the hparams (paper section 5.3).

    The Weighted Transformer's kappa and alpha have a second Adam with another schedule
    (section 4.1 of its paper).

    Args:
        hparams: The complete hparams.
        train_steps: Number of updates of the training run; needed by the factor
            `linear_decay`.

    Returns:
        The optimizer, not built yet. float16 activations get dynamic loss scaling.
    """
    # These names are part of the names in checkpoints.
    optimizer = _adam(hparams, make_schedule(hparams, train_steps), "adam")
    if hparams.branched_attention != "none":
        branch_adam = _adam(hparams, make_branch_schedule(hparams), "branch_adam")
        optimizers = keras.optimizers.OptimizerMap(
            optimizer, {BRANCH_WEIGHT_PATHS: branch_adam}
        )
        optimizer = keras.optimizers.MultiOptimizer(optimizers, name="multi")
    if hparams.activation_dtype == "float16":
        return keras.optimizers.LossScaleOptimizer(optimizer, name="loss_scale")
    return optimizer


def _adam(
    hparams: HParams,
    schedule: keras.optimizers.schedules.LearningRateSchedule,
    name: str,
) -> keras.optimizers.Adam:
    return keras.optimizers.Adam(
        schedule,
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
        use_ema=hparams.ema_decay > 0,
        ema_momentum=hparams.ema_decay,
        name=name,
    )
