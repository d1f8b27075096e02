"""Weights that are at least zero and sum to one (Weighted Transformer, section 3)."""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor, ops


def project_to_simplex(x: KerasTensor) -> KerasTensor:
    """Return the point of the probability simplex that is nearest to `x`.

    It subtracts the threshold for which the remaining positive values sum to one, which
    is found by sorting (Chen and Ye 2011, arXiv 1101.6081, algorithm 1).

    Args:
        x: Float `[size]`.

    Returns:
        Float `[size]`, at least zero, with sum one.
    """
    size = x.shape[-1]
    # A shift does not change the projection. Without it, 1e8 - 1.0 loses the 1.0.
    x = x - ops.max(x)
    descending = ops.flip(ops.sort(x))
    counts = ops.arange(1, size + 1, dtype=x.dtype)
    thresholds = (ops.cumsum(descending) - 1.0) / counts
    # The largest count whose smallest member stays positive.
    kept = ops.sum(ops.cast(descending > thresholds, "int32"))
    return ops.relu(x - ops.take(thresholds, kept - 1))


@keras.saving.register_keras_serializable(package="t2t_repro")
class Simplex(keras.constraints.Constraint):
    """Project a weight to the probability simplex after every update.

    The paper says "by projection" without saying which. The Euclidean projection
    changes an updated weight least.
    """

    def __call__(self, w: KerasTensor) -> KerasTensor:
        return project_to_simplex(w)


@keras.saving.register_keras_serializable(package="t2t_repro")
class RandomOnSimplex(keras.initializers.Initializer):
    """Initialize a weight with uniform random numbers divided by their sum.

    Differs from "initialized randomly, as with the rest of the weights" (section 4.1):
    the initial values must lie on the simplex.

    Args:
        seed: Seed of the draw. By default, Keras's global seed.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self._uniform = keras.initializers.RandomUniform(0.0, 1.0, seed)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> KerasTensor:
        draw = self._uniform(shape, dtype)
        return draw / ops.sum(draw)

    def get_config(self) -> dict[str, object]:
        return {"seed": self.seed}


@keras.saving.register_keras_serializable(package="t2t_repro")
class NearUniformOnSimplex(keras.initializers.Initializer):
    """Initialize a weight near 1 / size: (1 + spread N(0, 1)) / size, projected.

    Differs from the paper's "randomly" (section 4.1), which gives no distribution:
    uniform numbers divided by their sum begin with some branches almost switched off;
    these do not.

    Args:
        spread: Standard deviation relative to 1 / size; 0 is exactly 1 / size.
        seed: Seed of the draw. By default, Keras's global seed.
    """

    def __init__(self, spread: float = 0.1, seed: int | None = None) -> None:
        self.spread = spread
        self.seed = seed
        self._normal = keras.initializers.RandomNormal(1.0, spread, seed)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> KerasTensor:
        return project_to_simplex(self._normal(shape, dtype) / shape[-1])

    def get_config(self) -> dict[str, object]:
        return {"spread": self.spread, "seed": self.seed}
