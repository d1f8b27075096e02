"""Compute learning rates as products of tensor2tensor's factors.

tensor2tensor `utils/learning_rate.py: learning_rate_factor`. Let s be the
step counted from 1, w the warm-up steps, d the hidden size, T the steps of the
training run, and c the decay steps:

=================== ===================================
constant            learning_rate_constant
linear_warmup       min(1, s / w)
rsqrt_decay         max(s, w)^-0.5
rsqrt_hidden_size   d^-0.5
linear_decay        min(1, max(0, (T + 1 - s) / c))
=================== ===================================

The product of the first four with constant 1 is the paper's equation (3),
d^-0.5 min(s^-0.5, s w^-1.5). Differs from tensor2tensor: steps count from 1, so
that the first update is not multiplied by zero. Nor is the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import KerasTensor, ops

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
        (schedule.train_steps + 1.0 - step) / schedule.decay_steps, 0.0, 1.0
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

    def __call__(self, step: KerasTensor) -> KerasTensor:
        """Return the learning rate of an update, a float32 scalar.

        Args:
            step: Number of earlier updates, as Keras optimizers count.
        """
        step = ops.cast(step, "float32") + 1.0
        rate = ops.ones((), dtype="float32")
        for name in self.factors.split("*"):
            rate = rate * FACTORS[name](step, self)
        return rate

    def get_config(self) -> dict[str, object]:
        return {
            "factors": self.factors,
            "constant": self.constant,
            "warmup_steps": self.warmup_steps,
            "hidden_size": self.hidden_size,
            "decay_steps": self.decay_steps,
            "train_steps": self.train_steps,
        }


@keras.saving.register_keras_serializable(package="t2t_repro")
class FrozenSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Follow another schedule up to a step, and return zero after it.

    Args:
        schedule: The other schedule.
        after_steps: Number of the last update with a rate above zero; 0 = follow the
            other schedule forever.
    """

    def __init__(
        self,
        schedule: keras.optimizers.schedules.LearningRateSchedule,
        after_steps: int,
    ) -> None:
        self.schedule = schedule
        self.after_steps = after_steps

    def __call__(self, step: KerasTensor) -> KerasTensor:
        """Return the learning rate of an update; see `FactorSchedule`."""
        rate = self.schedule(step)
        if not self.after_steps:
            return rate
        moves = ops.cast(step, "float32") < float(self.after_steps)
        return ops.where(moves, rate, 0.0)

    def get_config(self) -> dict[str, object]:
        return {
            "schedule": keras.saving.serialize_keras_object(self.schedule),
            "after_steps": self.after_steps,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> FrozenSchedule:
        schedule = keras.saving.deserialize_keras_object(config["schedule"])
        return cls(schedule, config["after_steps"])
