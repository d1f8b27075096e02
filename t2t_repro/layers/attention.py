"""Scaled dot-product attention and multi-head attention (paper section 3.2).

tensor2tensor: `common_attention.py: dot_product_attention, multihead_attention`.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor, ops

from t2t_repro.layers.dropout import Dropout

# Large enough that a masked weight is exactly zero after a float32 softmax, small
# enough that a row with everything masked stays finite (tensor2tensor uses the same).
MASKED_LOGIT = -1e9


def attention_weights(
    query: KerasTensor,
    key: KerasTensor,
    mask: KerasTensor | None = None,
    bias: KerasTensor | None = None,
) -> KerasTensor:
    """Compute softmax(Q K^T / sqrt(d_k)), the weights of equation (1).

    The softmax runs in float32 whatever the inputs' dtype.

    Args:
        query: `[batch, num_heads, query_length, key_depth]`.
        key: `[batch, num_heads, key_length, key_depth]`.
        mask: Boolean, True = may attend, broadcastable to
            `[batch, num_heads, query_length, key_length]`.
        bias: Float, added to the logits, broadcastable likewise.

    Returns:
        Weights, float32 `[batch, num_heads, query_length, key_length]`. A query
        that may attend to nothing gets equal weights.
    """
    scaled_query = query * float(query.shape[-1]) ** -0.5
    logits = ops.cast(ops.einsum("BNTH,BNSH->BNTS", scaled_query, key), "float32")
    if bias is not None:
        logits += ops.cast(bias, "float32")
    if mask is not None:
        logits = ops.where(mask, logits, MASKED_LOGIT)
    return ops.softmax(logits, axis=-1)


@keras.saving.register_keras_serializable(package="t2t_repro")
class MultiheadAttention(keras.layers.Layer):
    """Multi-head attention with separate key and value depths (section 3.2.2).

    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O with
    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). The h projections of a kind
    are one matrix; none has a bias, as in the paper's equations. Each begins as
    Glorot uniform: the paper is silent. Differs from tensor2tensor before 2017-11,
    where queries, keys and values were one matrix, so of a lower limit.

    Args:
        hidden_size: Width of the inputs and of the output (d_model).
        num_heads: Number of heads (h).
        key_channels: Total width of queries and keys over all heads (h d_k).
        value_channels: Total width of values over all heads (h d_v).
        dropout_rate: Dropout on the attention weights (not in the paper's base;
            tensor2tensor `attention_dropout`).

    Call arguments:
        query_input: `[batch, query_length, hidden_size]`.
        memory_input: `[batch, key_length, hidden_size]`; the queries' own input
            for self-attention.
        attention_mask: Boolean, True = may attend, broadcastable to
            `[batch, num_heads, query_length, key_length]`.
        bias: Float, added to the attention logits.

    Returns:
        `[batch, query_length, hidden_size]`.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        num_heads: int,
        key_channels: int,
        value_channels: int,
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, channels in [("key", key_channels), ("value", value_channels)]:
            if channels % num_heads:
                raise ValueError(
                    f"`num_heads` must divide `{name}_channels`. "
                    f"Received: num_heads={num_heads}, {name}_channels={channels}"
                )
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.key_channels = key_channels
        self.value_channels = value_channels
        self.dropout_rate = dropout_rate

        def projection(name: str, channels: int) -> keras.layers.Dense:
            return keras.layers.Dense(
                channels,
                use_bias=False,
                kernel_initializer="glorot_uniform",
                name=name,
                dtype=self.dtype_policy,
            )

        self.query = projection("query", key_channels)
        self.key = projection("key", key_channels)
        self.value = projection("value", value_channels)
        self.output_projection = projection("output", hidden_size)
        self.weights_dropout = Dropout(
            dropout_rate, name="weights_dropout", dtype=self.dtype_policy
        )

    def build(self, input_shape: object = None) -> None:
        for projection in (self.query, self.key, self.value):
            projection.build((None, None, self.hidden_size))
        self.output_projection.build((None, None, self.value_channels))

    def call(
        self,
        query_input: KerasTensor,
        memory_input: KerasTensor,
        attention_mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        key, value = self.project_memory(memory_input)
        return self.attend(
            query_input, key, value, attention_mask, bias, training=training
        )

    def project_memory(
        self, memory_input: KerasTensor
    ) -> tuple[KerasTensor, KerasTensor]:
        """Project what is attended to, once for any number of queries.

        Args:
            memory_input: `[batch, key_length, hidden_size]`.

        Returns:
            Keys `[batch, num_heads, key_length, key_depth]` and values
            `[batch, num_heads, key_length, value_depth]`.
        """
        return (
            self._split_heads(self.key(memory_input)),
            self._split_heads(self.value(memory_input)),
        )

    def weights_of(
        self,
        query_input: KerasTensor,
        key: KerasTensor,
        attention_mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
    ) -> KerasTensor:
        """Return the attention weights, for inspection and for `attend`.

        Args:
            query_input: `[batch, query_length, hidden_size]`.
            key: Keys of `project_memory`.
            attention_mask: See the class.
            bias: See the class.

        Returns:
            float32 `[batch, num_heads, query_length, key_length]`.
        """
        query = self._split_heads(self.query(query_input))
        return attention_weights(query, key, attention_mask, bias)

    def attend(
        self,
        query_input: KerasTensor,
        key: KerasTensor,
        value: KerasTensor,
        attention_mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        """Attend to keys and values which are already projected.

        Args:
            query_input: `[batch, query_length, hidden_size]`.
            key: Keys of `project_memory`.
            value: Values of `project_memory`.
            attention_mask: See the class.
            bias: See the class.
            training: Whether dropout is active.

        Returns:
            `[batch, query_length, hidden_size]`.
        """
        weights = self.weights_of(query_input, key, attention_mask, bias)
        weights = self.weights_dropout(
            ops.cast(weights, self.compute_dtype), training=training
        )
        # [batch, query_length, num_heads, value_depth]
        context = ops.einsum("BNTS,BNSH->BTNH", weights, value)
        batch, length = ops.shape(context)[:2]
        context = ops.reshape(context, (batch, length, self.value_channels))
        return self.output_projection(context)

    def _split_heads(self, x: KerasTensor) -> KerasTensor:
        """Turn `[batch, length, channels]` into `[batch, num_heads, length, depth]`."""
        batch, length = ops.shape(x)[:2]
        depth = x.shape[-1] // self.num_heads
        x = ops.reshape(x, (batch, length, self.num_heads, depth))
        return ops.transpose(x, (0, 2, 1, 3))

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "key_channels": self.key_channels,
            "value_channels": self.value_channels,
            "dropout_rate": self.dropout_rate,
        }
