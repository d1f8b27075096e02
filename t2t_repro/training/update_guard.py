"""Recognize updates that would damage the weights, so that they can be skipped."""

from __future__ import annotations

import tensorflow as tf

from t2t_repro.training.loss_scale import MIN_LOSS_SCALE

# A running mean over the last 100 updates or so. There is no limit before that many.
DECAY = 0.99
WARM_UP = 100


class UpdateGuard:
    """Guard that skips updates which would damage the weights, and counts them.

    An update is skipped if its loss or its gradient norm is not finite, or if one of
    them exceeds `spike_factor` times its mean over earlier updates.

    With a loss-scaling optimizer, a norm that is not finite is an overflow, which says
    nothing about the data: that optimizer skips the update itself and then lowers its
    scale. An overflow is neither a skipped update nor one that was made, so it does not
    end a streak of skipped updates. If the scale is below `MIN_LOSS_SCALE`, such an
    update counts as bad and is skipped.

    The state is saved in checkpoints, so a resumed run makes the same decisions.

    Args:
        spike_factor: Largest accepted multiple of the mean; 0 = any finite value.
        warm_up: Number of accepted updates before a multiple of the mean is a limit.

    Attributes:
        variables: The state by name, for checkpoints.
        in_row: int64 variable, number of updates skipped since the last one that was
            made.
        total: int64 variable, number of skipped updates.
        rollbacks: int64 variable, number of returns to a checkpoint since the last
            regular checkpoint.
    """

    def __init__(self, spike_factor: float = 0.0, warm_up: int = WARM_UP) -> None:
        self.spike_factor = spike_factor
        self.warm_up = warm_up
        self.in_row, self.total, self.rollbacks, self._accepted = (
            tf.Variable(0, dtype=tf.int64) for _ in range(4)
        )
        # Sums with weights that fall by `DECAY`, of loss and gradient norm.
        self._sums = tf.Variable([0.0, 0.0])
        self.variables = {
            "in_row": self.in_row,
            "total": self.total,
            "rollbacks": self.rollbacks,
            "accepted": self._accepted,
            "sums": self._sums,
        }

    def means(self) -> tf.Tensor:
        """Return the means of loss and gradient norm, float32 `[2]`; 0 at first."""
        weight = 1.0 - tf.pow(DECAY, tf.cast(self._accepted, tf.float32))
        return tf.math.divide_no_nan((1.0 - DECAY) * self._sums, weight)

    def limits(self) -> tf.Tensor:
        """Return the largest accepted loss and gradient norm, float32 `[2]`."""
        if not self.spike_factor:
            return tf.fill([2], tf.float32.max)
        is_warm = self._accepted >= self.warm_up
        return tf.where(is_warm, self.spike_factor * self.means(), tf.float32.max)

    def count(self, results: dict[str, tf.Tensor]) -> None:
        """Take an update into the counts and means.

        Args:
            results: Metrics of the update: "loss", "gradient_norm" and "skipped".
        """
        skipped = results["skipped"] > 0.0
        values = tf.stack([results["loss"], results["gradient_norm"]])
        # An update with an infinite norm has overflowed: the optimizer did not make it.
        taken = ~skipped & tf.reduce_all(tf.math.is_finite(values))
        self._sums.assign(tf.where(taken, DECAY * self._sums + values, self._sums))
        self._accepted.assign_add(tf.cast(taken, tf.int64))
        one = tf.cast(skipped, tf.int64)
        self.total.assign_add(one)
        self.in_row.assign(tf.where(taken, tf.zeros_like(one), self.in_row + one))

    def reason(self, loss: float, gradient_norm: float) -> str:
        """Return why an update with these values was skipped, as a phrase."""
        (mean_loss, mean_norm) = self.means().numpy()
        found = f"loss {loss:.4g}, gradient norm {gradient_norm:.4g}"
        if not self.spike_factor or self._accepted.numpy() < self.warm_up:
            return found
        return f"{found}; their means are {mean_loss:.4g} and {mean_norm:.4g}"


def is_acceptable(
    limits: tf.Tensor,
    loss: tf.Tensor,
    gradient_norm: tf.Tensor,
    loss_scale: tf.Tensor | None = None,
) -> tf.Tensor:
    """Return whether an update should be made, a boolean scalar.

    Args:
        limits: See `UpdateGuard.limits`.
        loss: Loss of the global batch, float32 scalar.
        gradient_norm: Norm of the global gradient, float32 scalar.
        loss_scale: Factor of the loss, if the optimizer itself skips an infinite
            gradient and lowers the factor.
    """
    # A NaN is not below any limit, and an infinity is above the largest float.
    norm_is_fine = gradient_norm <= limits[1]
    if loss_scale is not None:
        overflowed = ~tf.math.is_finite(gradient_norm)
        norm_is_fine |= overflowed & (loss_scale >= MIN_LOSS_SCALE)
    return (loss <= limits[0]) & norm_is_fine
