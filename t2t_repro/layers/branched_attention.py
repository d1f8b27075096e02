"""Branched attention: the Weighted Transformer's sublayer (Ahmed et al. 2017).

Equations (5) to (7) of the paper::

    head_i     = Attention(Q W_i^Q, K W_i^K, V W_i^V)
    headbar_i  = kappa_i (head_i W_i^O)
    Branched   = sum_i alpha_i FFN_i(headbar_i)

kappa and alpha lie on the probability simplex. The sublayer takes the place of
multi-head attention and of the feed-forward network behind it.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor, ops

from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.simplex import RandomOnSimplex, Simplex


@keras.saving.register_keras_serializable(package="t2t_repro")
class BranchedAttention(MultiheadAttention):
    """Attention heads as branches, each with a feed-forward network, in a weighted sum.

    The paper prints one FFN, "identical to Equation (4)", and 192 added weights. Two
    readings keep that count, so `feed_forward` chooses:

    * "split" (the default): every branch has its own network of width filter_size / M.
      It costs what the Transformer costs, and is what public implementations do. The
      output bias is one for all branches; as the alphas sum to one, that is a bias of
      the sum.
    * "shared": one network of full width, applied to every branch. It is the letter of
      the paper, with M times as many hidden units to be computed.

    What else the paper leaves open:

    * Where it stands in a decoder layer. 192 weights are one kappa and one alpha for
      each of 12 layers, so one of a decoder layer's two attentions is branched, and
      `branched_in_decoder` chooses. The default is the attention over the encoder's
      output, since the network that is split stands behind it; that the paper's is
      "masked in the decoder layers" speaks for the other.
    * Normalisation and residuals. They "are retained", and one sublayer is left where
      there were two, so one of each stands round it. That is one layer normalisation
      fewer a layer than in the Transformer.
    * How kappa and alpha begin: see `simplex.RandomOnSimplex`; and which projection
      keeps their bounds: see `simplex.Simplex`.

    Args:
        hidden_size: Width of inputs and output (d_model).
        num_heads: Number of branches (M).
        key_channels: Width of queries and keys over all branches (M d_k).
        value_channels: Width of values over all branches (M d_v).
        filter_size: Width of the feed-forward networks (d_ff), over all branches where
            they are split.
        feed_forward: "split" or "shared".
        normalization: "simplex", the paper's, or "softmax", which it found worse.
        top_k: How many branches of largest alpha are summed, its gating experiment;
            0 = all.
        dropout_rate: Dropout on the attention weights.
        relu_dropout: Dropout after the ReLU.

    Call arguments:
        As for `MultiheadAttention`.

    Returns:
        `[batch, query_length, hidden_size]`.
    """

    FEED_FORWARDS = ("split", "shared")
    NORMALIZATIONS = ("simplex", "softmax")

    def __init__(
        self,
        *,
        filter_size: int,
        feed_forward: str = "split",
        normalization: str = "simplex",
        top_k: int = 0,
        relu_dropout: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if feed_forward not in self.FEED_FORWARDS:
            raise ValueError(
                f"`feed_forward` must be one of {self.FEED_FORWARDS}. "
                f"Received: {feed_forward!r}"
            )
        if normalization not in self.NORMALIZATIONS:
            raise ValueError(
                f"`normalization` must be one of {self.NORMALIZATIONS}. "
                f"Received: {normalization!r}"
            )
        if feed_forward == "split" and filter_size % self.num_heads:
            raise ValueError(
                "`num_heads` must divide `filter_size` where it is split. "
                f"Received: num_heads={self.num_heads}, filter_size={filter_size}"
            )
        if not 0 <= top_k <= self.num_heads:
            raise ValueError(
                "`top_k` must be from 0 to `num_heads`. "
                f"Received: top_k={top_k}, num_heads={self.num_heads}"
            )
        self.filter_size = filter_size
        self.feed_forward = feed_forward
        self.normalization = normalization
        self.top_k = top_k
        self.relu_dropout_rate = relu_dropout
        self.relu_dropout = Dropout(
            relu_dropout, name="relu_dropout", dtype=self.dtype_policy
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
        """Return kappa and alpha as they are applied, float32 `[num_heads]` each."""
        kappa, alpha = (ops.cast(w, "float32") for w in (self.kappa, self.alpha))
        if self.normalization == "softmax":
            kappa, alpha = ops.softmax(kappa), ops.softmax(alpha)
        if self.top_k:
            _, largest = ops.top_k(alpha, self.top_k)
            alpha *= ops.sum(ops.one_hot(largest, self.num_heads), axis=0)
        return kappa, alpha

    def merge(self, heads: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Apply equations (6) and (7) with fewer multiplications than they show.

        Nothing stands between W_i^O and the first matrix of FFN_i, so their product is
        taken first; and the sum over branches is taken with the second matrix.

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
        """Return W_i^O W_i of FFN_i, `[num_heads, value_depth, width]`."""
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
    """Glorot uniform for each matrix of a stack `[branches, fan_in, fan_out]`."""

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> KerasTensor:
        limit = (6.0 / (shape[1] + shape[2])) ** 0.5
        return keras.random.uniform(shape, -limit, limit, dtype=dtype)

    def get_config(self) -> dict[str, object]:
        return {}
