"""Attention over parameters, which replaces the feed-forward network.

The paper's LaTeX source, section "Two Feed-Forward Layers = Attention over
Parameters" (omitted from the published version); tensor2tensor
`common_attention.py: parameter_attention`.
"""

from __future__ import annotations

from typing import Any, Self

import keras
from keras import KerasTensor, ops

from t2t_repro.layers.attention import (
    check_heads,
    keep_weights,
    masked_softmax,
    projection,
)
from t2t_repro.layers.options import LayerOptions
from t2t_repro.layers.residual import Dropout


@keras.saving.register_keras_serializable(package="t2t_repro")
class ParameterAttention(keras.layers.Layer):
    """Multi-head attention whose keys and values are parameters.

    head_i = softmax(x W_i^Q (sqrt(d) K_i)^T / sqrt(d_pk)) sqrt(d) V_i. The heads are
    concatenated and projected. K_i and V_i are stored at the scale of embeddings,
    N(0, 1/d), and "scaled up by a factor of sqrt(d_model) in order to be more similar
    to activations".

    Args:
        hidden_size: Width of input and output (d).
        num_heads: Number of heads (h_p).
        memory_rows: Number of key-value pairs per head (n_p).
        key_channels: Width of queries and keys over all heads (h_p d_pk).
        value_channels: Width of values over all heads (h_p d_pv).
        dropout_rate: Probability that the value of a key-value pair is dropped, at all
            positions at once (tensor2tensor's choice; 0 in the paper's base).
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        x: `[batch, length, hidden_size]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.

    Raises:
        ValueError: If `num_heads` does not divide the channels.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        num_heads: int,
        memory_rows: int,
        key_channels: int,
        value_channels: int,
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_heads(num_heads, key_channels, value_channels)
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.memory_rows = memory_rows
        self.key_channels = key_channels
        self.value_channels = value_channels
        self.dropout_rate = dropout_rate
        self.query = projection("query", key_channels, self.dtype_policy)
        self.output_projection = projection("output", hidden_size, self.dtype_policy)
        self.row_dropout = Dropout(
            dropout_rate, name="row_dropout", dtype=self.dtype_policy
        )

    @classmethod
    def from_options(cls, options: LayerOptions, **kwargs: Any) -> Self:
        """Make the sublayer from the options of a layer; `kwargs` go to the class."""
        return cls(
            hidden_size=options.hidden_size,
            num_heads=options.parameter_attention_heads,
            memory_rows=options.filter_size,
            key_channels=options.parameter_attention_key_channels,
            value_channels=options.parameter_attention_value_channels,
            dropout_rate=options.attention_dropout,
            **kwargs,
        )

    def build(self, input_shape: object = None) -> None:
        self.query.build((None, None, self.hidden_size))
        self.output_projection.build((None, None, self.value_channels))
        self.memory_key = self._memory("memory_key", self.key_channels)
        self.memory_value = self._memory("memory_value", self.value_channels)

    def _memory(self, name: str, channels: int) -> keras.Variable:
        return self.add_weight(
            name=name,
            shape=(self.num_heads, self.memory_rows, channels // self.num_heads),
            initializer=keras.initializers.RandomNormal(stddev=self.hidden_size**-0.5),
        )

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        scale = self.hidden_size**0.5
        key = ops.convert_to_tensor(self.memory_key, self.compute_dtype) * scale
        value = ops.convert_to_tensor(self.memory_value, self.compute_dtype) * scale
        value = value * self.row_dropout(
            ops.ones_like(value[:, :, :1]), training=training
        )
        weights = masked_softmax(
            ops.matmul(self._queries(x), ops.transpose(key, (0, 2, 1)))
        )
        keep_weights(self, lambda: self._by_sentence(weights, x))
        heads = ops.matmul(ops.cast(weights, self.compute_dtype), value)
        heads = ops.transpose(heads, (1, 0, 2))
        merged = ops.reshape(heads, (*ops.shape(x)[:-1], self.value_channels))
        return self.output_projection(merged)

    def _queries(self, x: KerasTensor) -> KerasTensor:
        """Project to scaled queries, `[num_heads, batch * length, depth]`.

        Heads come first, as in the memory. If sentences came first, XLA would
        transpose the weights: memory_rows values per head and position.
        """
        depth = self.key_channels // self.num_heads
        query = ops.reshape(self.query(x), (-1, self.num_heads, depth))
        return ops.transpose(query * depth**-0.5, (1, 0, 2))

    def _by_sentence(self, weights: KerasTensor, x: KerasTensor) -> KerasTensor:
        """Turn `[head, batch * length, row]` into `[batch, head, length, row]`."""
        batch, length = ops.shape(x)[:2]
        shape = (self.num_heads, batch, length, self.memory_rows)
        return ops.transpose(ops.reshape(weights, shape), (1, 0, 2, 3))

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "memory_rows": self.memory_rows,
            "key_channels": self.key_channels,
            "value_channels": self.value_channels,
            "dropout_rate": self.dropout_rate,
        }
