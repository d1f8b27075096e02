"""The Weighted Transformer with both residual connections of a Transformer layer.

The paper says that layer normalization "after each sub-layer" and a residual connection
are "retained", that the mechanism adds 192 weights, and that the mechanism without
these weights "is identical to" the Transformer's (Ahmed et al. 2017, section 3). Two
readings add the weights and nothing else. `LayerOptions.branch_residual` chooses:

* "per_branch": each branch has its own residual stream, and the two normalizations are
  shared by all branches. Equations (6) and (7) keep their form, and FFN_i sees the
  residual stream::

      u_i = LN1(x + kappa_i head_i W_i^O)
      y   = LN2(sum_i alpha_i (u_i + FFN_i(u_i)))

* "shared": one stream for all branches. With kappa = alpha = 1 this is the Transformer,
  as the paper says of its equations::

      u = LN1(x + sum_i kappa_i head_i W_i^O)
      y = LN2(u + sum_i alpha_i FFN_i(u))

Under pre-norm, LN1 and LN2 move to the inputs of the sublayers, as in the Transformer.
"""

from __future__ import annotations

from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.choices import (
    BranchGain,
    BranchNormalization,
    BranchWeightsInit,
    Compatibility,
)
from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.attention_functions import merge_heads
from t2t_repro.layers.branch_networks import check_split
from t2t_repro.layers.branch_weights import Branches, output_matrices
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.options import AttentionRole, LayerOptions


@keras.saving.register_keras_serializable(package="t2t_repro")
class WeightedHeads(MultiheadAttention):
    """Multi-head attention with a weight kappa_i per head.

    Args:
        separate: Whether the output holds kappa_i head_i W_i^O of every branch, for
            "per_branch", instead of their sum.
        normalization: "simplex" or "softmax".
        gain: "none", "unit" or "initial"; see `BranchedAttention`.
        weights_init: Initial kappa; see `branch_weights`.
        **kwargs: Arguments of `MultiheadAttention`.

    Call arguments:
        As for `MultiheadAttention`.

    Returns:
        `[batch, query_length, hidden_size]`, or if `separate`,
        `[batch, num_heads, query_length, hidden_size]`.

    Raises:
        ValueError: If an option is unknown, or as for `MultiheadAttention`.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        num_heads: int,
        key_channels: int,
        value_channels: int,
        separate: bool = False,
        normalization: BranchNormalization = "simplex",
        gain: BranchGain = "none",
        weights_init: BranchWeightsInit = "random",
        compatibility: Compatibility = "scaled_dot_product",
        causal: bool = False,
        neighbourhood: int = 0,
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size=hidden_size,
            num_heads=num_heads,
            key_channels=key_channels,
            value_channels=value_channels,
            compatibility=compatibility,
            causal=causal,
            neighbourhood=neighbourhood,
            dropout_rate=dropout_rate,
            **kwargs,
        )
        self.branches = Branches(num_heads, normalization, gain, weights_init)
        self.separate = separate
        projection = self.output_projection
        projection.kernel_initializer = self.branches.initial(
            projection.kernel_initializer
        )

    @classmethod
    def from_options(
        cls, options: LayerOptions, role: AttentionRole, **kwargs: Any
    ) -> Self:
        """Make the attention of an encoder or decoder layer with branches.

        Args:
            options: Options of the encoder or decoder layer.
            role: Place of the sublayer.
            **kwargs: Other arguments of the class.
        """
        return super().from_options(
            options,
            role,
            separate=options.branch_residual == "per_branch",
            normalization=options.branch_normalization,
            gain=options.branch_gain,
            weights_init=options.branch_weights_init,
            **kwargs,
        )

    def build(self, input_shape: object = None) -> None:
        super().build()
        self.kappa = self.branches.add_weight(self, "kappa")

    def branch_weights(self) -> dict[str, KerasTensor]:
        """Return "kappa" as applied, without gain, float32 `[num_heads]`."""
        return {"kappa": self.branches.kappa(self.kappa)}

    def merge(self, heads: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Multiply heads by kappa, and project them; see `MultiheadAttention.merge`."""
        kappa = ops.cast(self.branch_weights()["kappa"], heads.dtype)
        kappa *= self.branches.factor
        heads = heads * kappa[:, None, None]
        if self.separate:
            return ops.einsum("BNTH,NHD->BNTD", heads, output_matrices(self))
        return self.output_projection(merge_heads(heads))

    def get_config(self) -> dict[str, object]:
        own = {"separate": self.separate, **self.branches.config()}
        return super().get_config() | own


@keras.saving.register_keras_serializable(package="t2t_repro")
class WeightedFeedForward(FeedForward):
    """sum_i alpha_i FFN_i(x) of networks that share one input ("shared").

    The FFN_i are the Transformer's network, divided along its inner width. The layer
    has the weights and initial values of `FeedForward`, and alpha multiplies its hidden
    units. The output bias is a bias of the sum, without alpha.

    Args:
        num_heads: Number of branches (M).
        normalization: "simplex" or "softmax".
        top_k: Number of branches with the largest alphas that are summed; 0 means all.
        gain: "none", "unit" or "initial"; see `BranchedAttention`.
        weights_init: Initial alpha; see `branch_weights`.
        **kwargs: Arguments of `FeedForward`.

    Call arguments:
        As for `FeedForward`.

    Raises:
        ValueError: If an option is unknown, `num_heads` does not divide
            `filter_size`, or `top_k` is not from 0 to `num_heads`.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        filter_size: int,
        num_heads: int,
        dropout_rate: float = 0.0,
        normalization: BranchNormalization = "simplex",
        top_k: int = 0,
        gain: BranchGain = "none",
        weights_init: BranchWeightsInit = "random",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size=hidden_size,
            filter_size=filter_size,
            dropout_rate=dropout_rate,
            **kwargs,
        )
        check_split(filter_size, num_heads)
        self.branches = Branches(num_heads, normalization, gain, weights_init, top_k)
        projection = self.output_projection
        projection.kernel_initializer = self.branches.initial(
            projection.kernel_initializer
        )

    @classmethod
    def from_options(cls, options: LayerOptions, **kwargs: Any) -> Self:
        """Make the sublayer from the options of a layer; `kwargs` go to the class."""
        return super().from_options(
            options,
            num_heads=options.num_heads,
            normalization=options.branch_normalization,
            top_k=options.branch_top_k,
            gain=options.branch_gain,
            weights_init=options.branch_weights_init,
            **kwargs,
        )

    def build(self, input_shape: object = None) -> None:
        super().build()
        self.alpha = self.branches.add_weight(self, "alpha")

    def branch_weights(self) -> dict[str, KerasTensor]:
        """Return "alpha" as applied, without gain, float32 `[num_heads]`."""
        return {"alpha": self.branches.alpha(self.alpha)}

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        hidden = self.relu_dropout(self.filter(x), training=training)
        alpha = ops.cast(self.branch_weights()["alpha"], hidden.dtype)
        alpha *= self.branches.factor
        per_unit = ops.repeat(alpha, self.filter_size // self.branches.num_heads)
        return self.output_projection(hidden * per_unit)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "num_heads": self.branches.num_heads,
            "top_k": self.branches.top_k,
            **self.branches.config(),
        }
