"""Branches of the Weighted Transformer: kappa and alpha, and the networks.

kappa and alpha are at least zero and sum to one (Ahmed et al. 2017, section 3).
"""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import (
    BranchGain,
    BranchNetwork,
    BranchNormalization,
    BranchWeightsInit,
    check_choice,
)
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.options import Sublayer
from t2t_repro.layers.residual import Dropout


def project_to_simplex(x: KerasTensor) -> KerasTensor:
    """Return the point of the probability simplex that is nearest to `x`.

    It subtracts the threshold at which the remaining positive values sum to one.
    Sorting finds the threshold (Chen and Ye 2011, arXiv 1101.6081, algorithm 1).

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

    Differs from "initialized randomly, as with the rest of the Transformer weights"
    (section 4.1): the initial values must lie on the simplex.

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


class Branches(Sublayer):
    """Base class of layers with branches: kappa and alpha, and their settings.

    The other base class, or the class itself, has the argument `num_heads`: the number
    of branches (M).

    Args:
        branch_normalization: "simplex", the paper's, or "softmax", which the paper
            found worse.
        branch_gain: "none"; "unit", which applies M kappa_i and M alpha_i; or
            "initial", which makes the initial output matrices M times as large.
        branch_weights_init: Initial kappa and alpha. "random": uniform numbers divided
            by their sum. "near_uniform": (1 + 0.1 N(0, 1)) / M projected. "uniform":
            1 / M. Before a softmax, the weight holds their logarithms.
        branch_top_k: Number of branches with the largest alphas that are summed (the
            paper's gating experiment); 0 means all.
        branch_merged: Whether there is alpha alone, without kappa. The paper found
            worse outcomes when "merged into one variable" (section 3). Without biases,
            scaling the input of a ReLU network is the same as scaling its output.
        **kwargs: Arguments of the other base class.

    Raises:
        ValueError: If an option is unknown, `branch_top_k` is not from 0 to
            `num_heads`, or there are biases of attention.
    """

    num_heads: int

    def __init__(
        self,
        *,
        branch_normalization: BranchNormalization = "simplex",
        branch_gain: BranchGain = "none",
        branch_weights_init: BranchWeightsInit = "random",
        branch_top_k: int = 0,
        branch_merged: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if getattr(self, "attention_bias", False):
            raise ValueError(
                "Attention with branches has no biases. Received: attention_bias=True"
            )
        check_choice("branch_normalization", branch_normalization, BranchNormalization)
        check_choice("branch_gain", branch_gain, BranchGain)
        check_choice("branch_weights_init", branch_weights_init, BranchWeightsInit)
        if not 0 <= branch_top_k <= self.num_heads:
            raise ValueError(
                "`branch_top_k` must be from 0 to `num_heads`. "
                f"Received: branch_top_k={branch_top_k}, num_heads={self.num_heads}"
            )
        self.branch_normalization = branch_normalization
        self.branch_gain = branch_gain
        self.branch_weights_init = branch_weights_init
        self.branch_top_k = branch_top_k
        self.branch_merged = branch_merged

    @property
    def factor(self) -> float:
        """Factor of kappa and alpha: M for "unit", otherwise 1."""
        return float(self.num_heads) if self.branch_gain == "unit" else 1.0

    def add_branch_weight(self, name: str) -> keras.Variable:
        """Add a weight with one value per branch, `[num_heads]`.

        Args:
            name: "kappa" or "alpha". The optimizer finds the weight by it.
        """
        on_simplex = self.branch_normalization == "simplex"
        initializer = _initializer(self.branch_weights_init)
        return self.add_weight(
            name=name,
            shape=(self.num_heads,),
            initializer=initializer if on_simplex else Logarithm(initializer),
            constraint=Simplex() if on_simplex else None,
            autocast=False,
        )

    def add_kappa(self) -> None:
        """Add `kappa`, unless there is alpha alone."""
        if not self.branch_merged:
            self.kappa = self.add_branch_weight("kappa")

    def weigh(self, heads: KerasTensor) -> KerasTensor:
        """Multiply heads by kappa, unless there is alpha alone.

        Args:
            heads: `[batch, num_heads, length, value_depth]`.
        """
        if self.branch_merged:
            return heads
        kappa = ops.cast(self.branch_weights()["kappa"], heads.dtype) * self.factor
        return heads * kappa[:, None, None]

    def branch_weights(self) -> dict[str, KerasTensor]:
        """Return "kappa", "alpha" or both, as applied, without `factor`.

        Returns:
            float32 `[num_heads]` by name.
        """
        found = {}
        for name in ("kappa", "alpha"):
            if hasattr(self, name):
                values = ops.cast(getattr(self, name), "float32")
                if self.branch_normalization == "softmax":
                    values = ops.softmax(values)
                found[name] = values
        if "alpha" in found and self.branch_top_k:
            _, largest = ops.top_k(found["alpha"], self.branch_top_k)
            found["alpha"] *= ops.sum(ops.one_hot(largest, self.num_heads), axis=0)
        return found

    def initial(
        self, initializer: keras.initializers.Initializer
    ) -> keras.initializers.Initializer:
        """Return an initializer of output matrices, times M for "initial"."""
        is_scaled = self.branch_gain == "initial"
        return Scaled(initializer, self.num_heads) if is_scaled else initializer

    def scale_initial(self, projection: keras.layers.Dense) -> None:
        """Give a layer that is not built yet the initial values of `initial`."""
        projection.kernel_initializer = self.initial(projection.kernel_initializer)

    def scale_heads(self, projection: keras.layers.Dense) -> None:
        """Give W^O the initial values that make up for kappa."""
        if not self.branch_merged:
            self.scale_initial(projection)


def _initializer(init: BranchWeightsInit) -> keras.initializers.Initializer:
    if init == "random":
        return RandomOnSimplex()
    return NearUniformOnSimplex(spread=0.1 if init == "near_uniform" else 0.0)


def output_matrices(attention: MultiHeadAttention) -> KerasTensor:
    """Return W_i^O of every branch, `[num_heads, value_depth, hidden_size]`."""
    kernel = ops.convert_to_tensor(attention.output_projection.kernel)
    depth = attention.attention_value_channels // attention.num_heads
    shape = (attention.num_heads, depth, kernel.shape[-1])
    return ops.reshape(ops.cast(kernel, attention.compute_dtype), shape)


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


class BranchwiseGlorot(keras.initializers.Initializer):
    """Glorot uniform for each matrix of `[branches, fan_in, fan_out]`."""

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> KerasTensor:
        limit = (6.0 / (shape[1] + shape[2])) ** 0.5
        return keras.random.uniform(shape, -limit, limit, dtype=dtype)


def check_split(filter_size: int, num_heads: int) -> None:
    """Raise ValueError if networks of `filter_size` cannot be split into branches."""
    if filter_size % num_heads:
        raise ValueError(
            "`num_heads` must divide `filter_size` if it is split. "
            f"Received: num_heads={num_heads}, filter_size={filter_size}"
        )


class BranchNetworks(Branches):
    """Base class of layers that contain the networks FFN_i of branches.

    Args:
        filter_size: Width of the network (d_ff), or of all of them if they are split.
        branched_attention: "split" or "shared"; see `BranchedAttention`.
        relu_dropout: Dropout after the ReLU.
        **kwargs: Arguments of `Branches` and of the other base class.

    Raises:
        ValueError: If an option is unknown, or `num_heads` does not divide the
            `filter_size` of split networks; and as for `Branches`.
    """

    def __init__(
        self,
        *,
        filter_size: int,
        branched_attention: BranchNetwork = "split",
        relu_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("branched_attention", branched_attention, BranchNetwork)
        if branched_attention == "split":
            check_split(filter_size, self.num_heads)
        self.filter_size = filter_size
        self.branched_attention = branched_attention
        self.relu_dropout = relu_dropout
        self.hidden_dropout = Dropout(
            relu_dropout, name="relu_dropout", dtype=self.dtype_policy
        )

    def build_networks(self, hidden_size: int) -> None:
        """Add the weights. All networks have one output bias, a bias of their sum."""
        networks = self.num_heads
        width = self.filter_size // networks
        if self.branched_attention == "shared":
            networks, width = 1, self.filter_size
        glorot = BranchwiseGlorot()
        self.filter_kernel = self.add_weight(
            name="filter_kernel",
            shape=(networks, hidden_size, width),
            initializer=glorot,
        )
        self.filter_bias = self.add_weight(
            name="filter_bias", shape=(networks, width), initializer="zeros"
        )
        self.feed_forward_kernel = self.add_weight(
            name="feed_forward_kernel",
            shape=(networks, width, hidden_size),
            initializer=self.initial(glorot),
        )
        self.feed_forward_bias = self.add_weight(
            name="feed_forward_bias", shape=(hidden_size,), initializer="zeros"
        )

    def cast_weight(self, weight: keras.Variable | KerasTensor) -> KerasTensor:
        """Return a weight in the dtype of the computation."""
        return ops.cast(ops.convert_to_tensor(weight), self.compute_dtype)

    def first_products(self, x: KerasTensor) -> KerasTensor:
        """Multiply the input of every branch by the first matrix of its network.

        Args:
            x: `[batch, num_heads, length, hidden_size]`.

        Returns:
            `[batch, length, num_heads, width]`.
        """
        kernel = self.cast_weight(self.filter_kernel)
        if self.branched_attention == "shared":
            return ops.einsum("BNTD,DF->BTNF", x, kernel[0])
        return ops.einsum("BNTD,NDF->BTNF", x, kernel)

    def hidden_units(
        self, products: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        """Add the bias to `first_products`, and apply ReLU and dropout."""
        hidden = ops.relu(products + self.cast_weight(self.filter_bias))
        return self.hidden_dropout(hidden, training=training)

    def second_products(self, hidden: KerasTensor) -> KerasTensor:
        """Multiply hidden units by the second matrices, and add the bias.

        Args:
            hidden: `[batch, length, num_heads, width]`.

        Returns:
            `[batch, num_heads, length, hidden_size]`.
        """
        second = self.cast_weight(self.feed_forward_kernel)
        if self.branched_attention == "shared":
            output = ops.einsum("BTNF,FD->BNTD", hidden, second[0])
        else:
            output = ops.einsum("BTNF,NFD->BNTD", hidden, second)
        return output + self.cast_weight(self.feed_forward_bias)

    def weighted_sum(self, hidden: KerasTensor, alpha: KerasTensor) -> KerasTensor:
        """Multiply hidden units by alpha and the second matrices, and sum branches.

        Args:
            hidden: `[batch, length, num_heads, width]`.
            alpha: float32 `[num_heads]`, without a gain.

        Returns:
            `[batch, length, hidden_size]`.
        """
        total = self.cast_weight(ops.sum(alpha))
        alpha, second = (
            self.cast_weight(alpha),
            self.cast_weight(self.feed_forward_kernel),
        )
        hidden = hidden * (alpha * self.factor)[:, None]
        if self.branched_attention == "shared":
            output = ops.einsum("BTF,FD->BTD", ops.sum(hidden, axis=2), second[0])
        else:
            output = ops.einsum("BTNF,NFD->BTD", hidden, second)
        # A bias of every network: no gain, and with `top_k` only the kept alphas.
        return output + self.cast_weight(self.feed_forward_bias) * total


@keras.saving.register_keras_serializable(package="t2t_repro")
class BranchedFeedForward(BranchNetworks):
    """sum_i alpha_i FFN_i(u_i), where every network has its own input ("per_branch").

    Args:
        num_heads: Number of branches (M).
        **kwargs: Arguments of `BranchNetworks`, among them the required `filter_size`;
            `hidden_size`, by default that of the input; and arguments of
            `keras.layers.Layer`.

    Call arguments:
        x: u_i of every branch, `[batch, num_heads, length, hidden_size]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.

    Raises:
        ValueError: As for `BranchNetworks`.

    Example:
    ```python
    networks = BranchedFeedForward(num_heads=8, filter_size=2048)
    branches = keras.random.normal((2, 8, 10, 64))
    assert networks(branches).shape == (2, 10, 64)
    ```
    """

    def __init__(self, *, num_heads: int, **kwargs: Any) -> None:
        self.num_heads = num_heads
        super().__init__(**kwargs)

    def build(self, input_shape: Any = None) -> None:
        self.build_networks(self.width(input_shape))
        self.alpha = self.add_branch_weight("alpha")

    def average(self, x: KerasTensor) -> KerasTensor:
        """Return sum_i alpha_i u_i, the residual of the sum, without a gain.

        Args:
            x: u_i of every branch, `[batch, num_heads, length, hidden_size]`.

        Returns:
            `[batch, length, hidden_size]`.
        """
        alpha = ops.cast(self.branch_weights()["alpha"], x.dtype)
        return ops.einsum("BNTD,N->BTD", x, alpha)

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        hidden = self.hidden_units(self.first_products(x), training)
        return self.weighted_sum(hidden, self.branch_weights()["alpha"])
