"""Sublayers of the Weighted Transformer (Ahmed et al. 2017).

Equations (5) to (7) of the paper are `BranchedAttention`, which replaces multi-head
attention and the feed-forward network after it::

    head_i     = Attention(Q W_i^Q, K W_i^K, V W_i^V)
    headbar_i  = kappa_i (head_i W_i^O)
    Branched   = sum_i alpha_i FFN_i(headbar_i)

kappa and alpha lie on the probability simplex.

The paper says that layer normalization "after each sub-layer" and a residual connection
are "retained", that the mechanism adds 192 weights, and that the mechanism without
these weights "is identical to" the Transformer's (section 3). Two readings add the
weights and nothing else. They keep both sublayers and both residual connections of a
Transformer layer, with `WeightedHeads` and the networks; `branch_residual` chooses:

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

from t2t_repro.constants import (
    BranchGain,
    BranchNetwork,
    BranchNormalization,
    BranchResidual,
    BranchWeightsInit,
    Compatibility,
    check_choice,
)
from t2t_repro.layers.attention import MultiheadAttention, merge_heads
from t2t_repro.layers.branches import (
    Branches,
    BranchNetworks,
    check_split,
    output_matrices,
)
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.options import AttentionRole, LayerOptions
from t2t_repro.layers.residual import Dropout


@keras.saving.register_keras_serializable(package="t2t_repro")
class BranchedAttention(MultiheadAttention, BranchNetworks):
    """Attention heads as branches, each with a feed-forward network, in a weighted sum.

    The paper prints one FFN, "identical to Equation (4)", and 192 additional weights.
    Two readings agree with that count, and `feed_forward` chooses one of them:

    * "split": every branch has a network of width filter_size / M. The cost is that of
      the Transformer, and public implementations do the same. All branches share one
      output bias; because the alphas sum to one, it is a bias of the sum (unless each
      branch is normalized on its own, as with `residual="inside"`).
    * "shared": one network of full width is applied to every branch. This follows the
      text of the paper and computes M times as many hidden units.

    The paper leaves three more points open:

    * Its place in a decoder layer. 192 weights are one kappa and one alpha per branch
      in each of 12 layers, so one of the two attentions of a decoder layer is branched.
      `LayerOptions.branched_in_decoder` chooses. The default is the attention over the
      encoder's output, because the split network comes after it. The paper's "masked
      in the decoder layers" supports the other one.
    * Normalization and residuals, which "are retained". `residual` chooses one of two
      places here; the module has two more, which keep both residual
      connections of a Transformer layer.

      - "around": two sublayers become one, with one residual connection and one
        normalization around it. A layer has one layer normalization fewer than in
        the Transformer.
      - "inside": each network also has a residual connection and a normalization,
        sum_i alpha_i LN_i(headbar_i + FFN_i(headbar_i)), as in public
        reimplementations (JayParks/transformer). The text has no such normalization,
        and its 192 additional weights exclude it. It also cancels the size of kappa_i.
    * The size of the sum. kappa and alpha are about 1 / M, so the output is about M^-2
      of a Transformer's sublayer. The paper compensates for this nowhere: it forbids
      kappa = alpha = 1 and calls the sum a weighted one. `gain` can compensate.
    * The initial kappa and alpha, "initialized randomly" (see `Branches`), and
      the projection that keeps them on the simplex (see `simplex.Simplex`).

    Args:
        hidden_size: Width of the inputs and of the output (d_model).
        num_heads: Number of branches (M).
        key_channels: Width of queries and keys over all branches (M d_k).
        value_channels: Width of values over all branches (M d_v).
        filter_size: Width of the feed-forward network (d_ff), or of all of them
            together if they are split.
        feed_forward: "split" or "shared".
        normalization: "simplex", the paper's, or "softmax", which the paper found
            worse.
        top_k: Number of branches with the largest alphas that are summed (the paper's
            gating experiment); 0 means all.
        relu_dropout: Dropout after the ReLU.
        residual: "around" or "inside".
        gain: "none"; "unit", which applies M kappa_i and M alpha_i; or "initial", which
            makes the initial W^O and second matrices M times as large.
        weights_init: Initial kappa and alpha: "random", "near_uniform" or "uniform";
            see `Branches`.
        norm_epsilon: Added to the variance in the normalization "inside".
        compatibility: See `MultiheadAttention`.
        causal: Whether a position cannot see later positions.
        neighbourhood: See `MultiheadAttention`.
        dropout_rate: Dropout on the attention weights.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        As for `MultiheadAttention`.

    Returns:
        `[batch, query_length, hidden_size]`.

    Raises:
        ValueError: If an option is unknown, `num_heads` does not divide the
            `filter_size` of split networks, `top_k` is not from 0 to `num_heads`, or as
            for `MultiheadAttention`.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        num_heads: int,
        key_channels: int,
        value_channels: int,
        filter_size: int,
        feed_forward: BranchNetwork = "split",
        normalization: BranchNormalization = "simplex",
        top_k: int = 0,
        relu_dropout: float = 0.0,
        residual: BranchResidual = "around",
        gain: BranchGain = "none",
        weights_init: BranchWeightsInit = "random",
        norm_epsilon: float = 1e-6,
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
        check_choice("feed_forward", feed_forward, BranchNetwork)
        if feed_forward == "split":
            check_split(filter_size, num_heads)
        if residual not in ("around", "inside"):
            raise ValueError(
                "`residual` must be 'around' or 'inside'; `WeightedHeads` has the "
                f"others. Received: {residual!r}"
            )
        self.filter_size = filter_size
        self.feed_forward = feed_forward
        self.branches = Branches(num_heads, normalization, gain, weights_init, top_k)
        self.residual = residual
        self.norm_epsilon = norm_epsilon
        projection = self.output_projection
        projection.kernel_initializer = self.branches.initial(
            projection.kernel_initializer
        )
        if residual == "inside":
            self.inner_normalization = keras.layers.LayerNormalization(
                center=False,
                scale=False,
                epsilon=norm_epsilon,
                name="inner_normalization",
                dtype=self.dtype_policy,
            )
        self.relu_dropout_rate = relu_dropout
        self.relu_dropout = Dropout(
            relu_dropout, name="relu_dropout", dtype=self.dtype_policy
        )

    @classmethod
    def from_options(
        cls, options: LayerOptions, role: AttentionRole, **kwargs: Any
    ) -> Self:
        """Make the branched sublayer of an encoder or decoder layer.

        Args:
            options: Options of the encoder or decoder layer.
            role: Place of the sublayer.
            **kwargs: Other arguments of the class.
        """
        return super().from_options(
            options,
            role,
            filter_size=options.filter_size,
            feed_forward=options.branched,
            normalization=options.branch_normalization,
            top_k=options.branch_top_k,
            relu_dropout=options.relu_dropout,
            residual=options.branch_residual,
            gain=options.branch_gain,
            weights_init=options.branch_weights_init,
            norm_epsilon=options.norm_epsilon,
            **kwargs,
        )

    def build(self, input_shape: object = None) -> None:
        super().build()
        self.build_networks()
        self.kappa = self.branches.add_weight(self, "kappa")
        self.alpha = self.branches.add_weight(self, "alpha")
        if self.residual == "inside":
            self.inner_normalization.build((None, None, None, self.hidden_size))
            # One gain and one bias per network.
            shape = (self.filter_kernel.shape[0], 1, self.hidden_size)
            self.inner_gain = self.add_weight(
                name="gamma", shape=shape, initializer="ones"
            )
            self.inner_bias = self.add_weight(
                name="beta", shape=shape, initializer="zeros"
            )

    def branch_weights(self) -> dict[str, KerasTensor]:
        """Return "kappa" and "alpha" without gain, float32 `[num_heads]` each."""
        return {
            "kappa": self.branches.kappa(self.kappa),
            "alpha": self.branches.alpha(self.alpha),
        }

    def merge(self, heads: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Apply equations (6) and (7).

        Args:
            heads: `[batch, num_heads, length, value_depth]`.
            training: Whether dropout is active.

        Returns:
            `[batch, length, hidden_size]`.
        """
        kappa, alpha = self.branch_weights().values()
        kappa = ops.cast(kappa, heads.dtype) * self.branches.factor
        heads = heads * kappa[:, None, None]
        if self.residual == "inside":
            return self._normalized_sum(heads, alpha, training)
        products = self._first_products(heads)
        return self.weighted_sum(self.hidden_units(products, training), alpha)

    def _first_products(self, heads: KerasTensor) -> KerasTensor:
        """Multiply heads by W_i^O and the first matrix of FFN_i, `[B, T, N, F]`."""
        if heads.shape[2] == 1:  # Cached greedy search computes one position at a time.
            inputs = ops.einsum("BNTH,NHD->BNTD", heads, output_matrices(self))
            return self.first_products(inputs)
        # For many positions, multiplying the matrices first is cheaper.
        return ops.einsum("BNTH,NHF->BTNF", heads, self._first_kernel())

    def _normalized_sum(
        self, heads: KerasTensor, alpha: KerasTensor, training: bool | None
    ) -> KerasTensor:
        """Return sum_i alpha_i LN_i(h_i + FFN_i(h_i)), h_i = kappa_i head_i W_i^O."""
        kernel = output_matrices(self)
        inputs = ops.einsum("BNTH,NHD->BNTD", heads, kernel)
        hidden = self.hidden_units(self.first_products(inputs), training)
        total = inputs + self.second_products(hidden)
        normalized = self.inner_normalization(total)
        normalized *= self.cast_weight(self.inner_gain)
        normalized += self.cast_weight(self.inner_bias)
        alpha = self.cast_weight(alpha) * self.branches.factor
        return ops.einsum("BNTD,N->BTD", normalized, alpha)

    def _first_kernel(self) -> KerasTensor:
        """Return W_i^O times the first matrix of FFN_i, `[num_heads, H, width]`."""
        output, first = output_matrices(self), self.cast_weight(self.filter_kernel)
        if self.feed_forward == "shared":
            return ops.einsum("NHD,DF->NHF", output, first[0])
        return ops.einsum("NHD,NDF->NHF", output, first)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "filter_size": self.filter_size,
            "feed_forward": self.feed_forward,
            "top_k": self.branches.top_k,
            "relu_dropout": self.relu_dropout_rate,
            "residual": self.residual,
            "norm_epsilon": self.norm_epsilon,
            **self.branches.config(),
        }


@keras.saving.register_keras_serializable(package="t2t_repro")
class WeightedHeads(MultiheadAttention):
    """Multi-head attention with a weight kappa_i per head.

    Args:
        separate: Whether the output holds kappa_i head_i W_i^O of every branch, for
            "per_branch", instead of their sum.
        normalization: "simplex" or "softmax".
        gain: "none", "unit" or "initial"; see `BranchedAttention`.
        weights_init: Initial kappa; see `Branches`.
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
        weights_init: Initial alpha; see `Branches`.
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
