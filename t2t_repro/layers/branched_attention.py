"""Branched attention: the Weighted Transformer's sublayer (Ahmed et al. 2017).

Equations (5) to (7) of the paper::

    head_i     = Attention(Q W_i^Q, K W_i^K, V W_i^V)
    headbar_i  = kappa_i (head_i W_i^O)
    Branched   = sum_i alpha_i FFN_i(headbar_i)

kappa and alpha lie on the probability simplex. The sublayer replaces multi-head
attention and the feed-forward network after it.
"""

from __future__ import annotations

from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.choices import (
    BranchNetwork,
    BranchNormalization,
    Compatibility,
    check_choice,
)
from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.options import AttentionRole, LayerOptions
from t2t_repro.layers.simplex import RandomOnSimplex, Simplex


@keras.saving.register_keras_serializable(package="t2t_repro")
class BranchedAttention(MultiheadAttention):
    """Attention heads as branches, each with a feed-forward network, in a weighted sum.

    The paper prints one FFN, "identical to Equation (4)", and 192 additional weights.
    Two readings agree with that count, and `feed_forward` chooses one of them:

    * "split": every branch has a network of width filter_size / M. The cost is that of
      the Transformer, and public implementations do the same. All branches share one
      output bias; because the alphas sum to one, it is a bias of the sum.
    * "shared": one network of full width is applied to every branch. This follows the
      text of the paper and computes M times as many hidden units.

    The paper leaves three more points open:

    * Its place in a decoder layer. 192 weights are one kappa and one alpha for each of
      12 layers, so one of the two attentions of a decoder layer is branched.
      `LayerOptions.branched_in_decoder` chooses. The default is the attention over the
      encoder's output, because the split network comes after it. The paper's "masked
      in the decoder layers" supports the other one.
    * Normalization and residuals. They "are retained", and two sublayers become one, so
      there is one of each around it. A layer has one layer normalization fewer than
      in the Transformer.
    * The initial kappa and alpha (see `simplex.RandomOnSimplex`), and the projection
      that keeps their bounds (see `simplex.Simplex`).

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
        ValueError: If `feed_forward` or `normalization` is unknown, `num_heads` does
            not divide the `filter_size` of split networks, `top_k` exceeds `num_heads`,
            or as for `MultiheadAttention`.
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
        check_choice("normalization", normalization, BranchNormalization)
        if feed_forward == "split" and filter_size % num_heads:
            raise ValueError(
                "`num_heads` must divide `filter_size` if it is split. "
                f"Received: num_heads={num_heads}, filter_size={filter_size}"
            )
        if not 0 <= top_k <= num_heads:
            raise ValueError(
                "`top_k` must be from 0 to `num_heads`. "
                f"Received: top_k={top_k}, num_heads={num_heads}"
            )
        self.filter_size = filter_size
        self.feed_forward = feed_forward
        self.normalization = normalization
        self.top_k = top_k
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
            **kwargs,
        )

    def build(self, input_shape: object = None) -> None:
        super().build()
        branches, width = self._feed_forward_shape()
        glorot = _BranchwiseGlorot()
        self.filter_kernel = self.add_weight(
            name="filter_kernel",
            shape=(branches, self.hidden_size, width),
            initializer=glorot,
        )
        self.filter_bias = self.add_weight(
            name="filter_bias", shape=(branches, width), initializer="zeros"
        )
        self.feed_forward_kernel = self.add_weight(
            name="feed_forward_kernel",
            shape=(branches, width, self.hidden_size),
            initializer=glorot,
        )
        self.feed_forward_bias = self.add_weight(
            name="feed_forward_bias", shape=(self.hidden_size,), initializer="zeros"
        )
        self.kappa = self._branch_weight("kappa")
        self.alpha = self._branch_weight("alpha")

    def _feed_forward_shape(self) -> tuple[int, int]:
        """Return the number of networks and the width of each."""
        if self.feed_forward == "shared":
            return 1, self.filter_size
        return self.num_heads, self.filter_size // self.num_heads

    def _branch_weight(self, name: str) -> keras.Variable:
        on_simplex = self.normalization == "simplex"
        return self.add_weight(
            name=name,
            shape=(self.num_heads,),
            initializer=RandomOnSimplex() if on_simplex else "random_normal",
            constraint=Simplex() if on_simplex else None,
            autocast=False,
        )

    def branch_weights(self) -> tuple[KerasTensor, KerasTensor]:
        """Return the kappa and alpha that are applied, float32 `[num_heads]` each."""
        kappa, alpha = (ops.cast(w, "float32") for w in (self.kappa, self.alpha))
        if self.normalization == "softmax":
            kappa, alpha = ops.softmax(kappa), ops.softmax(alpha)
        if self.top_k:
            _, largest = ops.top_k(alpha, self.top_k)
            alpha *= ops.sum(ops.one_hot(largest, self.num_heads), axis=0)
        return kappa, alpha

    def merge(self, heads: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Apply equations (6) and (7), with fewer multiplications than they show.

        W_i^O and the first matrix of FFN_i follow each other, so their product is
        computed first. The second matrix computes the sum over branches.

        Args:
            heads: `[batch, num_heads, length, value_depth]`.
            training: Whether dropout is active.

        Returns:
            `[batch, length, hidden_size]`.
        """
        kappa, alpha = (ops.cast(w, heads.dtype) for w in self.branch_weights())
        bias, second, last_bias = (
            ops.convert_to_tensor(w, dtype=self.compute_dtype)
            for w in (
                self.filter_bias,
                self.feed_forward_kernel,
                self.feed_forward_bias,
            )
        )
        hidden = ops.einsum(
            "BNTH,NHF->BTNF", heads * kappa[:, None, None], self._first_kernel()
        )
        hidden = self.relu_dropout(ops.relu(hidden + bias), training=training)
        hidden = hidden * alpha[:, None]
        if self.feed_forward == "shared":
            output = ops.einsum("BTF,FD->BTD", ops.sum(hidden, axis=2), second[0])
        else:
            output = ops.einsum("BTNF,NFD->BTD", hidden, second)
        return output + last_bias * ops.sum(alpha)

    def _first_kernel(self) -> KerasTensor:
        """Return W_i^O times the first matrix of FFN_i, `[num_heads, H, width]`."""
        output, first = (
            ops.convert_to_tensor(w, dtype=self.compute_dtype)
            for w in (self.output_projection.kernel, self.filter_kernel)
        )
        depth = self.value_channels // self.num_heads
        output = ops.reshape(output, (self.num_heads, depth, self.hidden_size))
        if self.feed_forward == "shared":
            return ops.einsum("NHD,DF->NHF", output, first[0])
        return ops.einsum("NHD,NDF->NHF", output, first)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "filter_size": self.filter_size,
            "feed_forward": self.feed_forward,
            "normalization": self.normalization,
            "top_k": self.top_k,
            "relu_dropout": self.relu_dropout_rate,
        }


@keras.saving.register_keras_serializable(package="t2t_repro")
class _BranchwiseGlorot(keras.initializers.Initializer):
    """Initialize each matrix of `[branches, fan_in, fan_out]` as Glorot uniform."""

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> KerasTensor:
        limit = (6.0 / (shape[1] + shape[2])) ** 0.5
        return keras.random.uniform(shape, -limit, limit, dtype=dtype)

    def get_config(self) -> dict[str, object]:
        return {}
