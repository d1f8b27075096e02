"""Read the dynamic loss scaling of float16 training runs.

Micikevicius et al. 2018, "Mixed Precision Training", section 3.2. Keras's
`LossScaleOptimizer` halves the scale and skips the update if a gradient is not finite,
and doubles it after 2,000 other updates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import keras
import tensorflow as tf

# Halving the scale further helps nobody: the gradient itself is not finite. The value
# is that of fairseq's --min-loss-scale.
MIN_LOSS_SCALE = 1e-4


def loss_scales_of(optimizer: keras.optimizers.Optimizer) -> dict[str, tf.Tensor]:
    """Return the factor of the loss in the next update.

    Args:
        optimizer: An optimizer of `training.optimizer.make_optimizer`.

    Returns:
        "loss_scale", a float32 scalar, or nothing if the loss is not scaled.
    """
    if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return {}
    return {"loss_scale": optimizer.scale_loss(tf.constant(1.0))}


def has_overflowed(step: Mapping[str, float]) -> bool:
    """Return whether the loss scale was too high for an update, which was not made.

    Args:
        step: Metrics of an update, as `make_train_step` returns them.
    """
    is_scaled = "loss_scale" in step and not step.get("skipped")
    return is_scaled and not math.isfinite(step["gradient_norm"])
