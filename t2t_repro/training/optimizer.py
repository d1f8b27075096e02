"""The optimizer: Adam, its learning rate schedules, and the average of the weights.

Learning rates are products of tensor2tensor's factors (`utils/learning_rate.py:
learning_rate_factor`). Let s be the step counted from 1, w the warm-up steps, d the
hidden size, T the steps of the training run, and c the decay steps:

=================== ===================================
constant            learning_rate_constant
linear_warmup       min(1, s / w)
rsqrt_decay         max(s, w)^-0.5
rsqrt_hidden_size   d^-0.5
linear_decay        min(1, max(0, (T + 1 - s) / c))
=================== ===================================

The product of the first four with constant 1 is the paper's equation (3),
d^-0.5 min(s^-0.5, s w^-1.5). Differs from tensor2tensor: steps count from 1, so
that neither the first nor the last update is multiplied by zero. With
`learning_rate_first_step=0`, they count from 0 as there, and T replaces T + 1.

This module imports no TensorFlow.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator, Mapping

import keras
from keras import KerasTensor, ops

from t2t_repro.settings.hparams import HParams

FACTORS: dict[str, Callable[[KerasTensor, FactorSchedule], KerasTensor]] = {
    "constant": lambda step, schedule: schedule.constant,
    "linear_warmup": lambda step, schedule: ops.minimum(
        1.0, step / schedule.warmup_steps
    ),
    "rsqrt_decay": lambda step, schedule: ops.rsqrt(
        ops.maximum(step, float(schedule.warmup_steps))
    ),
    "rsqrt_hidden_size": lambda step, schedule: schedule.hidden_size**-0.5,
    "linear_decay": lambda step, schedule: ops.clip(
        (schedule.train_steps + schedule.first_step - step) / schedule.decay_steps,
        0.0,
        1.0,
    ),
}


@keras.saving.register_keras_serializable(package="t2t_repro")
class FactorSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Product of named factors.

    Args:
        factors: Names joined by "*", for example
            "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size".
        constant: Value of the factor "constant".
        warmup_steps: Number of updates in the warm-up (w).
        hidden_size: Width of the model (d).
        decay_steps: Number of updates in the linear decay (c).
        train_steps: Number of updates of the training run (T); 0 if no factor reads it.
        first_step: Number of the first update, 1 or 0.
        frozen_after_steps: Number of updates after which the rate is zero; 0 = never.

    Raises:
        ValueError: If a factor is unknown, or needs `train_steps`.
    """

    def __init__(
        self,
        factors: str,
        constant: float,
        warmup_steps: int,
        hidden_size: int,
        decay_steps: int = 1,
        train_steps: int = 0,
        first_step: int = 1,
        frozen_after_steps: int = 0,
    ) -> None:
        unknown = [name for name in factors.split("*") if name not in FACTORS]
        if unknown:
            raise ValueError(
                f"`factors` must be a product of {sorted(FACTORS)}. "
                f"Received: {factors!r} with {unknown}"
            )
        if not train_steps and "linear_decay" in factors.split("*"):
            raise ValueError(
                "The factor linear_decay needs `train_steps`. Received: "
                f"factors={factors!r}, train_steps={train_steps}"
            )
        self.factors = factors
        self.constant = constant
        self.warmup_steps = warmup_steps
        self.hidden_size = hidden_size
        self.decay_steps = decay_steps
        self.train_steps = train_steps
        self.first_step = first_step
        self.frozen_after_steps = frozen_after_steps

    def __call__(self, step: KerasTensor) -> KerasTensor:
        """Return the learning rate of an update, a float32 scalar.

        Args:
            step: Number of earlier updates, as Keras optimizers count.
        """
        step = ops.cast(step, "float32") + float(self.first_step)
        rate = ops.ones((), dtype="float32")
        for name in self.factors.split("*"):
            rate = rate * FACTORS[name](step, self)
        if self.frozen_after_steps:
            end = float(self.frozen_after_steps + self.first_step)
            rate = ops.where(step < end, rate, 0.0)
        return rate

    def get_config(self) -> dict[str, object]:
        return {
            "factors": self.factors,
            "constant": self.constant,
            "warmup_steps": self.warmup_steps,
            "hidden_size": self.hidden_size,
            "decay_steps": self.decay_steps,
            "train_steps": self.train_steps,
            "first_step": self.first_step,
            "frozen_after_steps": self.frozen_after_steps,
        }


# Halving the scale of the loss further is useless: the gradient itself is not finite.
# The value is that of fairseq's --min-loss-scale.
MIN_LOSS_SCALE = 1e-4
_AVERAGE = "_average"  # suffix of a moving average's name
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
        first_step=hparams.learning_rate_first_step,
    )


def make_branch_schedule(hparams: HParams) -> FactorSchedule:
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
    return FactorSchedule(
        "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
        constant=h.branch_learning_rate_constant * layers**0.5,
        warmup_steps=h.branch_learning_rate_warmup_steps,
        hidden_size=h.hidden_size,
        frozen_after_steps=h.branch_frozen_after_steps,
    )


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


def moving_averages(
    model: keras.Model, optimizer: keras.optimizers.Optimizer
) -> list[tuple[keras.Variable, KerasTensor]]:
    """Return the trained weights with their averages; empty if there are none.

    Args:
        model: The model.
        optimizer: Its optimizer, built.
    """
    averages = {
        variable.name.removesuffix(_AVERAGE): variable.value
        for variable in optimizer.variables
        if variable.name.endswith(_AVERAGE)
    }
    # Keras names a variable of the optimizer after the path of its weight.
    names = {v.path.replace("/", "_"): v for v in model.trainable_variables}
    return [(names[name], average) for name, average in averages.items()]


@contextlib.contextmanager
def averaged_weights(
    model: keras.Model, optimizer: keras.optimizers.Optimizer
) -> Generator[None]:
    """Give a model its averaged weights inside a `with` block.

    Afterwards, it has exactly the weights of before. A constraint, such as the one of a
    Weighted Transformer's kappa and alpha, holds for the averages, too: Keras averages
    weights before it applies constraints.

    Keras updates an average after every update: decay * average + (1 - decay) * weight,
    beginning with the weights after the first update. It is part of the optimizer's
    state, so checkpoints hold it and a resumed run continues it exactly.

    Args:
        model: The model.
        optimizer: Its optimizer. Without a moving average, nothing changes.
    """
    pairs = moving_averages(model, optimizer)
    own = [weight.numpy() for weight, _ in pairs]
    try:
        for weight, average in pairs:
            value = ops.convert_to_tensor(average)
            constrained = weight.constraint(value) if weight.constraint else value
            weight.assign(constrained)
        yield
    finally:
        for (weight, _), value in zip(pairs, own, strict=True):
            weight.assign(value)


def loss_scales_of(optimizer: keras.optimizers.Optimizer) -> dict[str, KerasTensor]:
    """Return the factor of the loss in the next update.

    float16 training scales the loss (Micikevicius et al. 2018, "Mixed Precision
    Training", section 3.2). Keras's `LossScaleOptimizer` halves the scale and skips the
    update if a gradient is not finite, and doubles it after 2,000 other updates.

    Args:
        optimizer: An optimizer of `training.optimizer.make_optimizer`.

    Returns:
        "loss_scale", a float32 scalar, or nothing if the loss is not scaled.
    """
    if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return {}
    return {"loss_scale": optimizer.scale_loss(ops.convert_to_tensor(1.0))}


def has_overflowed(step: Mapping[str, float]) -> bool:
    """Return whether the loss scale was too high for an update, which was not made.

    Args:
        step: Metrics of an update, as `make_train_step` returns them.
    """
    is_scaled = "loss_scale" in step and not step.get("skipped")
    return is_scaled and not math.isfinite(step["gradient_norm"])


def learning_rates_of(optimizer: keras.optimizers.Optimizer) -> dict[str, KerasTensor]:
    """Return the learning rates of the next update, float32 scalars.

    Args:
        optimizer: An optimizer of `training.optimizer.make_optimizer`.

    Returns:
        "learning_rate", and "branch_learning_rate" if kappa and alpha have another.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if not isinstance(optimizer, keras.optimizers.MultiOptimizer):
        return {"learning_rate": ops.convert_to_tensor(optimizer.learning_rate)}
    branch, default = optimizer.optimizers  # the default is the last one
    return {
        "learning_rate": ops.convert_to_tensor(default.learning_rate),
        "branch_learning_rate": ops.convert_to_tensor(branch.learning_rate),
    }
