"""The weights of branches, kappa and alpha, and the initial values of branches."""

from __future__ import annotations

import dataclasses
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


@dataclasses.dataclass(frozen=True)
class Branches:
    """The branches of a layer: their number, and the settings of kappa and alpha.

    Attributes:
        num_heads: Number of branches (M).
        normalization: "simplex" or "softmax".
        gain: "none"; "unit", which applies M kappa_i and M alpha_i; or "initial", which
            makes the initial output matrices M times as large.
        weights_init: "random": uniform numbers divided by their sum. "near_uniform":
            (1 + 0.1 N(0, 1)) / M projected. "uniform": 1 / M. Before a softmax, the
            weight holds their logarithms.
        top_k: Number of branches with the largest alphas that are summed; 0 means all.

    Raises:
        ValueError: If an option is unknown, or `top_k` is not from 0 to `num_heads`.
    """

    num_heads: int
    normalization: BranchNormalization
    gain: BranchGain
    weights_init: BranchWeightsInit
    top_k: int = 0

    def __post_init__(self) -> None:
        check_choice("normalization", self.normalization, BranchNormalization)
        check_choice("gain", self.gain, BranchGain)
        check_choice("weights_init", self.weights_init, BranchWeightsInit)
        if not 0 <= self.top_k <= self.num_heads:
            raise ValueError(
                "`top_k` must be from 0 to `num_heads`. "
                f"Received: top_k={self.top_k}, num_heads={self.num_heads}"
            )

    @property
    def factor(self) -> float:
        """Factor of kappa and alpha: M for "unit", otherwise 1."""
        return float(self.num_heads) if self.gain == "unit" else 1.0

    def add_weight(self, layer: keras.layers.Layer, name: str) -> keras.Variable:
        """Add kappa or alpha to a layer, one value per branch.

        Args:
            layer: Layer that owns the weight.
            name: "kappa" or "alpha". The optimizer finds the weight by it.

        Returns:
            The weight, `[num_heads]`, for `kappa` or `alpha`.
        """
        on_simplex = self.normalization == "simplex"
        initializer = _initializer(self.weights_init)
        return layer.add_weight(
            name=name,
            shape=(self.num_heads,),
            initializer=initializer if on_simplex else Logarithm(initializer),
            constraint=Simplex() if on_simplex else None,
            autocast=False,
        )

    def kappa(self, weight: keras.Variable) -> KerasTensor:
        """Return kappa as it is applied, without `factor`, float32 `[num_heads]`."""
        values = ops.cast(weight, "float32")
        return ops.softmax(values) if self.normalization == "softmax" else values

    def alpha(self, weight: keras.Variable) -> KerasTensor:
        """Return alpha as it is applied, without `factor`, float32 `[num_heads]`."""
        values = self.kappa(weight)
        if self.top_k:
            _, largest = ops.top_k(values, self.top_k)
            values *= ops.sum(ops.one_hot(largest, self.num_heads), axis=0)
        return values

    def initial(
        self, initializer: keras.initializers.Initializer
    ) -> keras.initializers.Initializer:
        """Return an initializer of output matrices, times M for "initial"."""
        is_scaled = self.gain == "initial"
        return Scaled(initializer, self.num_heads) if is_scaled else initializer

    def config(self) -> dict[str, object]:
        """Return the arguments of a layer that all layers with branches have."""
        return {
            "normalization": self.normalization,
            "gain": self.gain,
            "weights_init": self.weights_init,
        }


def _initializer(init: BranchWeightsInit) -> keras.initializers.Initializer:
    if init == "random":
        return RandomOnSimplex()
    return NearUniformOnSimplex(spread=0.1 if init == "near_uniform" else 0.0)


def output_matrices(attention: MultiheadAttention) -> KerasTensor:
    """Return W_i^O of every branch, `[num_heads, value_depth, hidden_size]`."""
    kernel = ops.convert_to_tensor(attention.output_projection.kernel)
    depth = attention.value_channels // attention.num_heads
    shape = (attention.num_heads, depth, attention.hidden_size)
    return ops.reshape(ops.cast(kernel, attention.compute_dtype), shape)


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
