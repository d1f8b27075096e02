"""The weights of branches, kappa and alpha, and the initial values of branches."""

from __future__ import annotations

from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.choices import (
    BranchGain,
    BranchNormalization,
    BranchWeightsInit,
    check_choice,
)
from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.simplex import NearUniformOnSimplex, RandomOnSimplex, Simplex


def check_branches(
    num_branches: int,
    *,
    normalization: BranchNormalization,
    gain: BranchGain,
    weights_init: BranchWeightsInit,
    top_k: int = 0,
) -> None:
    """Check the options of a layer that has branches.

    Args:
        num_branches: Number of branches (M), the layer's `num_heads`.
        normalization: "simplex" or "softmax".
        gain: "none", "unit" or "initial".
        weights_init: "random", "near_uniform" or "uniform".
        top_k: Number of branches that are summed; 0 means all.

    Raises:
        ValueError: If an option is unknown, or `top_k` is not from 0 to `num_heads`.
    """
    check_choice("normalization", normalization, BranchNormalization)
    check_choice("gain", gain, BranchGain)
    check_choice("weights_init", weights_init, BranchWeightsInit)
    if not 0 <= top_k <= num_branches:
        raise ValueError(
            "`top_k` must be from 0 to `num_heads`. "
            f"Received: top_k={top_k}, num_heads={num_branches}"
        )


def add_branch_weight(
    layer: keras.layers.Layer,
    name: str,
    num_branches: int,
    normalization: BranchNormalization,
    init: BranchWeightsInit,
) -> keras.Variable:
    """Add kappa or alpha to a layer, one value per branch.

    Args:
        layer: Layer that owns the weight.
        name: "kappa" or "alpha". The optimizer finds the weight by it.
        num_branches: Number of branches (M).
        normalization: "simplex" or "softmax".
        init: "random": uniform numbers divided by their sum. "near_uniform":
            (1 + 0.1 N(0, 1)) / M projected. "uniform": 1 / M. Before a softmax, the
            weight holds their logarithms.

    Returns:
        The weight, `[num_branches]`, before `applied_branch_weight`.
    """
    on_simplex = normalization == "simplex"
    initializer = _initializer(init)
    return layer.add_weight(
        name=name,
        shape=(num_branches,),
        initializer=initializer if on_simplex else Logarithm(initializer),
        constraint=Simplex() if on_simplex else None,
        autocast=False,
    )


def _initializer(init: BranchWeightsInit) -> keras.initializers.Initializer:
    if init == "random":
        return RandomOnSimplex()
    return NearUniformOnSimplex(spread=0.1 if init == "near_uniform" else 0.0)


def applied_branch_weight(
    weight: keras.Variable, normalization: BranchNormalization, top_k: int = 0
) -> KerasTensor:
    """Return kappa or alpha as it is applied, without a gain.

    Args:
        weight: Weight of `add_branch_weight`.
        normalization: "simplex" or "softmax".
        top_k: Number of largest values that are kept; 0 means all.

    Returns:
        float32 `[num_branches]`.
    """
    values = ops.cast(weight, "float32")
    if normalization == "softmax":
        values = ops.softmax(values)
    if top_k:
        _, largest = ops.top_k(values, top_k)
        values *= ops.sum(ops.one_hot(largest, values.shape[0]), axis=0)
    return values


def applied_gain(gain: BranchGain, num_branches: int) -> float:
    """Return the factor of kappa and alpha: M for "unit", otherwise 1."""
    return float(num_branches) if gain == "unit" else 1.0


def output_matrices(attention: MultiheadAttention) -> KerasTensor:
    """Return W_i^O of every branch, `[num_heads, value_depth, hidden_size]`."""
    kernel = ops.convert_to_tensor(attention.output_projection.kernel)
    depth = attention.value_channels // attention.num_heads
    shape = (attention.num_heads, depth, attention.hidden_size)
    return ops.reshape(ops.cast(kernel, attention.compute_dtype), shape)


def with_initial_gain(
    initializer: keras.initializers.Initializer, gain: BranchGain, num_branches: int
) -> keras.initializers.Initializer:
    """Return an initializer times M for "initial", otherwise the initializer itself."""
    return Scaled(initializer, num_branches) if gain == "initial" else initializer


@keras.saving.register_keras_serializable(package="t2t_repro")
class Scaled(keras.initializers.Initializer):
    """Initializer that multiplies the values of another one.

    Args:
        initializer: The other initializer.
        factor: Factor of its values.
    """

    def __init__(
        self, initializer: keras.initializers.Initializer, factor: float
    ) -> None:
        self.initializer = initializer
        self.factor = factor

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> KerasTensor:
        return self.initializer(shape, dtype) * self.factor

    def get_config(self) -> dict[str, object]:
        inner = keras.saving.serialize_keras_object(self.initializer)
        return {"initializer": inner, "factor": self.factor}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        inner = keras.saving.deserialize_keras_object(config["initializer"])
        return cls(inner, config["factor"])


@keras.saving.register_keras_serializable(package="t2t_repro")
class Logarithm(keras.initializers.Initializer):
    """Logarithm of the values of another initializer, for a softmax.

    Args:
        initializer: Initializer of values that are at least zero.
    """

    def __init__(self, initializer: keras.initializers.Initializer) -> None:
        self.initializer = initializer

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> KerasTensor:
        values = self.initializer(shape, dtype)
        return ops.log(ops.maximum(values, keras.config.epsilon()))

    def get_config(self) -> dict[str, object]:
        return {"initializer": keras.saving.serialize_keras_object(self.initializer)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(keras.saving.deserialize_keras_object(config["initializer"]))


@keras.saving.register_keras_serializable(package="t2t_repro")
class BranchwiseGlorot(keras.initializers.Initializer):
    """Glorot uniform for each matrix of `[branches, fan_in, fan_out]`."""

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> KerasTensor:
        limit = (6.0 / (shape[1] + shape[2])) ** 0.5
        return keras.random.uniform(shape, -limit, limit, dtype=dtype)

    def get_config(self) -> dict[str, object]:
        return {}
