"""Feed-forward networks of branches, and their weighted sum."""

from __future__ import annotations

from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.choices import (
    BranchGain,
    BranchNetwork,
    BranchNormalization,
    BranchWeightsInit,
    check_choice,
)
from t2t_repro.layers.branch_weights import (
    Branches,
    BranchwiseGlorot,
)
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.options import LayerOptions


def check_split(filter_size: int, num_heads: int) -> None:
    """Raise ValueError if networks of `filter_size` cannot be split into branches."""
    if filter_size % num_heads:
        raise ValueError(
            "`num_heads` must divide `filter_size` if it is split. "
            f"Received: num_heads={num_heads}, filter_size={filter_size}"
        )


class BranchNetworks(keras.layers.Layer):
    """Weights and second half of FFN_i, for layers that contain branches.

    A base class. The subclass sets the attributes, and calls `build_networks`.

    Attributes:
        hidden_size: Width of the output (d_model).
        filter_size: Width of the network (d_ff), or of all of them if they are split.
        feed_forward: "split" or "shared"; see `BranchedAttention`.
        branches: The branches.
        relu_dropout: Dropout after the ReLU.
    """

    hidden_size: int
    filter_size: int
    feed_forward: BranchNetwork
    branches: Branches
    relu_dropout: keras.layers.Layer

    def build_networks(self) -> None:
        """Add the weights. All networks have one output bias, a bias of their sum."""
        networks = self.branches.num_heads
        width = self.filter_size // networks
        if self.feed_forward == "shared":
            networks, width = 1, self.filter_size
        glorot = BranchwiseGlorot()
        self.filter_kernel = self.add_weight(
            name="filter_kernel",
            shape=(networks, self.hidden_size, width),
            initializer=glorot,
        )
        self.filter_bias = self.add_weight(
            name="filter_bias", shape=(networks, width), initializer="zeros"
        )
        self.feed_forward_kernel = self.add_weight(
            name="feed_forward_kernel",
            shape=(networks, width, self.hidden_size),
            initializer=self.branches.initial(glorot),
        )
        self.feed_forward_bias = self.add_weight(
            name="feed_forward_bias", shape=(self.hidden_size,), initializer="zeros"
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
        if self.feed_forward == "shared":
            return ops.einsum("BNTD,DF->BTNF", x, kernel[0])
        return ops.einsum("BNTD,NDF->BTNF", x, kernel)

    def hidden_units(
        self, products: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        """Add the bias to `first_products`, and apply ReLU and dropout."""
        hidden = ops.relu(products + self.cast_weight(self.filter_bias))
        return self.relu_dropout(hidden, training=training)

    def second_products(self, hidden: KerasTensor) -> KerasTensor:
        """Multiply hidden units by the second matrices, and add the bias.

        Args:
            hidden: `[batch, length, num_heads, width]`.

        Returns:
            `[batch, num_heads, length, hidden_size]`.
        """
        second = self.cast_weight(self.feed_forward_kernel)
        if self.feed_forward == "shared":
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
        hidden = hidden * (alpha * self.branches.factor)[:, None]
        if self.feed_forward == "shared":
            output = ops.einsum("BTF,FD->BTD", ops.sum(hidden, axis=2), second[0])
        else:
            output = ops.einsum("BTNF,NFD->BTD", hidden, second)
        # A bias of every network: no gain, and with `top_k` only the kept alphas.
        return output + self.cast_weight(self.feed_forward_bias) * total


@keras.saving.register_keras_serializable(package="t2t_repro")
class BranchedFeedForward(BranchNetworks):
    """sum_i alpha_i FFN_i(u_i), where every network has its own input ("per_branch").

    Args:
        hidden_size: Width of inputs and output (d_model).
        filter_size: Width of the network (d_ff), or of all of them if they are split.
        num_heads: Number of branches (M).
        feed_forward: "split" or "shared"; see `BranchedAttention`.
        normalization: "simplex" or "softmax".
        top_k: Number of branches with the largest alphas that are summed; 0 means all.
        gain: "none", "unit" or "initial"; see `BranchedAttention`.
        weights_init: Initial alpha; see `branch_weights`.
        dropout_rate: Dropout after the ReLU.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        x: u_i of every branch, `[batch, num_heads, length, hidden_size]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.

    Raises:
        ValueError: If an option is unknown, `num_heads` does not divide the
            `filter_size` of split networks, or `top_k` is not from 0 to `num_heads`.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        filter_size: int,
        num_heads: int,
        feed_forward: BranchNetwork = "split",
        normalization: BranchNormalization = "simplex",
        top_k: int = 0,
        gain: BranchGain = "none",
        weights_init: BranchWeightsInit = "random",
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("feed_forward", feed_forward, BranchNetwork)
        if feed_forward == "split":
            check_split(filter_size, num_heads)
        self.branches = Branches(num_heads, normalization, gain, weights_init, top_k)
        self.hidden_size = hidden_size
        self.filter_size = filter_size
        self.feed_forward = feed_forward
        self.dropout_rate = dropout_rate
        self.relu_dropout = Dropout(
            dropout_rate, name="relu_dropout", dtype=self.dtype_policy
        )

    @classmethod
    def from_options(cls, options: LayerOptions, **kwargs: Any) -> Self:
        """Make the sublayer from the options of a layer; `kwargs` go to the class."""
        return cls(
            hidden_size=options.hidden_size,
            filter_size=options.filter_size,
            num_heads=options.num_heads,
            feed_forward="shared" if options.branched == "shared" else "split",
            normalization=options.branch_normalization,
            top_k=options.branch_top_k,
            gain=options.branch_gain,
            weights_init=options.branch_weights_init,
            dropout_rate=options.relu_dropout,
            **kwargs,
        )

    def build(self, input_shape: object = None) -> None:
        self.build_networks()
        self.alpha = self.branches.add_weight(self, "alpha")

    def branch_weights(self) -> dict[str, KerasTensor]:
        """Return "alpha" as applied, without gain, float32 `[num_heads]`."""
        return {"alpha": self.branches.alpha(self.alpha)}

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

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "filter_size": self.filter_size,
            "num_heads": self.branches.num_heads,
            "feed_forward": self.feed_forward,
            "top_k": self.branches.top_k,
            "dropout_rate": self.dropout_rate,
            **self.branches.config(),
        }
