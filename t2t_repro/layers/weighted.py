"""Sublayers of the Weighted Transformer (Ahmed et al. 2017).

Equations (5) to (7) of the paper are `BranchedAttention`, which replaces multi-head
attention and the feed-forward network after it::

    head_i     = Attention(Q W_i^Q, K W_i^K, V W_i^V)
    headbar_i  = kappa_i (head_i W_i^O)
    Branched   = sum_i alpha_i FFN_i(headbar_i)

kappa and alpha lie on the probability simplex.

The paper says that layer normalization and residual connections "are retained", and
that without the additional weights "the proposed mechanism is identical to the
multi-head attention mechanism in the Transformer" (section 3). We read "mechanism" as
attention and network together. Two readings add the weights and nothing else. They keep
both sublayers and both residual connections of a Transformer layer, with
`WeightedHeads` and the networks; `branch_residual` chooses:

* "per_branch": each branch has its own residual stream, and the two normalizations are
  shared by all branches. Equations (6) and (7) keep their form, and FFN_i sees the
  residual stream::

      u_i = LN1(x + kappa_i head_i W_i^O)
      y   = LN2(sum_i alpha_i (u_i + FFN_i(u_i)))

* "shared": one stream for all branches. With kappa = alpha = 1 this is the Transformer;
  the paper says that its equations are then those of multi-head attention::

      u = LN1(x + sum_i kappa_i head_i W_i^O)
      y = LN2(u + sum_i alpha_i FFN_i(u))

Under pre-norm, LN1 and LN2 move to the inputs of the sublayers, as in the Transformer.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import BranchResidual
from t2t_repro.layers.attention import MultiHeadAttention, project_heads
from t2t_repro.layers.branches import (
    Branches,
    BranchNetworks,
    check_split,
    output_matrices,
)
from t2t_repro.layers.feed_forward import FeedForward


@keras.saving.register_keras_serializable(package="t2t_repro")
class BranchedAttention(BranchNetworks, MultiHeadAttention):
    """Attention heads as branches, each with a feed-forward network, in a weighted sum.

    The paper prints one FFN, "identical to Equation (4)", and 192 additional weights.
    Two readings agree with that count, and `branched_attention` chooses one:

    * "split": every branch has a network of width filter_size / M. The cost is that of
      the Transformer, and public implementations do the same. All branches share one
      output bias; because the alphas sum to one, it is a bias of the sum (unless each
      branch is normalized on its own, as with `branch_residual="inside"`).
    * "shared": one network of full width is applied to every branch. This follows the
      text of the paper and computes M times as many hidden units.

    The paper leaves four more points open:

    * Its place in a decoder layer. 192 weights are one kappa and one alpha per branch
      in each of 12 layers, so one of the two attentions of a decoder layer is branched.
      `branched_in_decoder` of a decoder layer chooses. The default is the attention
      over the encoder's output, because the split network comes after it. The paper's
      "masked in the decoder layers" supports the other one.
    * Normalization and residuals, which "are retained". `branch_residual` chooses one
      of two places here; the module has two more, which keep both residual
      connections of a Transformer layer.

      - "around": two sublayers become one, with one residual connection and one
        normalization around it. A layer has one layer normalization fewer than in
        the Transformer.
      - "inside": each network also has a residual connection and a normalization,
        sum_i alpha_i LN_i(headbar_i + FFN_i(headbar_i)), as in public
        reimplementations (JayParks/transformer). The text has no such normalization,
        and its 192 additional weights exclude it. It also cancels the size of kappa_i.
    * The size of the sum. kappa and alpha are about 1 / M, so the output is about M^-2
      of a Transformer's sublayer. The paper forbids kappa = alpha = 1 and calls the sum
      a weighted one. It only gives both a larger learning rate, "to compensate for
      their bounds", which does not restore the size. `branch_gain` can compensate.
    * The initial kappa and alpha, "initialized randomly" (see `Branches`), and
      the projection that keeps them on the simplex (see `Simplex`).

    Args:
        num_heads: Number of branches (M).
        filter_size: Width of the feed-forward network (d_ff), or of all of them
            together if they are split.
        branched_attention: "split" or "shared".
        branch_residual: "around" or "inside".
        norm_epsilon: Added to the variance in the normalization "inside".
        **kwargs: Other arguments of `BranchNetworks`, `Branches` and
            `MultiHeadAttention`.

    The call arguments are those of `MultiHeadAttention`.

    Returns:
        `[batch, query_length, hidden_size]`.

    Raises:
        ValueError: If `branch_residual` is another one, or as for `BranchNetworks` and
            `MultiHeadAttention`.

    Example:
    ```python
    attention = BranchedAttention(num_heads=8, filter_size=2048)
    x = keras.random.normal((2, 10, 64))
    assert attention(x, x).shape == (2, 10, 64)
    assert set(attention.branch_weights()) == {"kappa", "alpha"}
    ```
    """

    def __init__(
        self,
        *,
        branch_residual: BranchResidual = "around",
        norm_epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if branch_residual not in ("around", "inside"):
            raise ValueError(
                "`branch_residual` must be 'around' or 'inside'; `WeightedHeads` has "
                f"the others. Received: {branch_residual!r}"
            )
        self.branch_residual = branch_residual
        self.norm_epsilon = norm_epsilon
        self.scale_heads(self.output_projection)
        if branch_residual == "inside":
            self.inner_normalization = keras.layers.LayerNormalization(
                center=False,
                scale=False,
                epsilon=norm_epsilon,
                name="inner_normalization",
                dtype=self.dtype_policy,
            )

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        width = self.width(input_shape)
        self.build_networks(width)
        self.add_kappa()
        self.alpha = self.add_branch_weight("alpha")
        if self.branch_residual == "inside":
            self.inner_normalization.build((None, None, None, width))
            # One gain and one bias per network.
            shape = (self.filter_kernel.shape[0], 1, width)
            self.inner_gain = self.add_weight(
                name="gamma", shape=shape, initializer="ones"
            )
            self.inner_bias = self.add_weight(
                name="beta", shape=shape, initializer="zeros"
            )

    def merge(self, heads: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Apply equations (6) and (7).

        Args:
            heads: `[batch, num_heads, length, value_depth]`.
            training: Whether dropout is active.

        Returns:
            `[batch, length, hidden_size]`.
        """
        heads = self.weigh(heads)
        alpha = self.branch_weights()["alpha"]
        if self.branch_residual == "inside":
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
        alpha = self.cast_weight(alpha) * self.factor
        return ops.einsum("BNTD,N->BTD", normalized, alpha)

    def _first_kernel(self) -> KerasTensor:
        """Return W_i^O times the first matrix of FFN_i, `[num_heads, H, width]`."""
        output, first = output_matrices(self), self.cast_weight(self.filter_kernel)
        if self.branched_attention == "shared":
            return ops.einsum("NHD,DF->NHF", output, first[0])
        return ops.einsum("NHD,NDF->NHF", output, first)


@keras.saving.register_keras_serializable(package="t2t_repro")
class WeightedHeads(Branches, MultiHeadAttention):
    """Multi-head attention with a weight kappa_i per head.

    Args:
        branch_residual: "per_branch", for which the output holds kappa_i head_i W_i^O
            of every branch; or "shared", for which it is their sum.
        **kwargs: Arguments of `Branches` and `MultiHeadAttention`.

    The call arguments are those of `MultiHeadAttention`.

    Returns:
        `[batch, query_length, hidden_size]`, or for "per_branch",
        `[batch, num_heads, query_length, hidden_size]`.

    Raises:
        ValueError: If an option is unknown, or as for `MultiHeadAttention`.

    Example:
    ```python
    heads = WeightedHeads(num_heads=8)
    x = keras.random.normal((2, 10, 64))
    assert heads(x, x).shape == (2, 10, 64)
    assert set(heads.branch_weights()) == {"kappa"}
    ```
    """

    def __init__(
        self, *, branch_residual: BranchResidual = "shared", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if branch_residual not in ("per_branch", "shared"):
            raise ValueError(
                "`branch_residual` must be 'per_branch' or 'shared'; "
                f"`BranchedAttention` has the others. Received: {branch_residual!r}"
            )
        self.branch_residual = branch_residual
        self.scale_heads(self.output_projection)

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        self.add_kappa()

    def merge(self, heads: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Multiply heads by kappa, and project them; see `MultiHeadAttention.merge`."""
        heads = self.weigh(heads)
        if self.branch_residual == "per_branch":
            return ops.einsum("BNTH,NHD->BNTD", heads, output_matrices(self))
        return project_heads(self.output_projection, heads)


@keras.saving.register_keras_serializable(package="t2t_repro")
class WeightedFeedForward(Branches, FeedForward):
    """sum_i alpha_i FFN_i(x) of networks that share one input ("shared").

    The FFN_i are the Transformer's network, divided along its inner width. The layer
    has the weights and initial values of `FeedForward`, and alpha multiplies its hidden
    units. The output bias is a bias of the sum, without alpha.

    Args:
        num_heads: Number of branches (M).
        **kwargs: Arguments of `Branches` and `FeedForward`, among them the required
            `filter_size`.

    The call arguments are those of `FeedForward`.

    Raises:
        ValueError: If an option is unknown, or `num_heads` does not divide
            `filter_size`; and as for `Branches`.

    Example:
    ```python
    network = WeightedFeedForward(num_heads=8, filter_size=2048)
    assert network(keras.random.normal((2, 10, 64))).shape == (2, 10, 64)
    ```
    """

    def __init__(self, *, num_heads: int, **kwargs: Any) -> None:
        self.num_heads = num_heads
        super().__init__(**kwargs)
        check_split(self.filter_size, num_heads)
        self.scale_initial(self.output_projection)

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        self.alpha = self.add_branch_weight("alpha")

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        hidden = self.hidden_dropout(self.filter(x), training=training)
        alpha = ops.cast(self.branch_weights()["alpha"], hidden.dtype)
        alpha *= self.factor
        per_unit = ops.repeat(alpha, self.filter_size // self.num_heads)
        return self.output_projection(hidden * per_unit)
