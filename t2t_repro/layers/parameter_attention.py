"""Attention over parameters, which replaces the feed-forward network.

The paper's LaTeX source, section "Two Feed-Forward Layers = Attention over
Parameters" (omitted from the published version); tensor2tensor
`common_attention.py: parameter_attention`.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor, ops

from t2t_repro.layers.attention import (
    check_heads,
    keep_weights,
    masked_softmax,
    projection,
)
from t2t_repro.layers.options import Sublayer, build_dense
from t2t_repro.layers.residual import Dropout


@keras.saving.register_keras_serializable(package="t2t_repro")
class ParameterAttention(Sublayer):
    """Multi-head attention whose keys and values are parameters.

    head_i = softmax(x W_i^Q (sqrt(d) K_i)^T / sqrt(d_pk)) sqrt(d) V_i. The heads are
    concatenated and projected. K_i and V_i are stored at the scale of embeddings,
    N(0, 1/d), and "scaled up by a factor of sqrt(d_model) in order to be more similar
    to activations".

    Args:
        filter_size: Number of key-value pairs per head (n_p).
        parameter_attention_heads: Number of heads (h_p).
        parameter_attention_key_channels: Width of queries and keys over all heads
            (h_p d_pk); 0 = `hidden_size`.
        parameter_attention_value_channels: Width of values over all heads (h_p d_pv);
            0 = `hidden_size`.
        attention_dropout: Probability that the value of a key-value pair is dropped, at
            all positions at once (tensor2tensor's choice; 0 in the paper's base).
        **kwargs: `hidden_size` (d), by default that of the input, and arguments of
            `keras.layers.Layer`.

    Call arguments:
        x: `[batch, length, hidden_size]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.

    Raises:
        ValueError: If the number of heads does not divide the channels.

    Example:
    ```python
    layer = ParameterAttention(filter_size=1536, parameter_attention_heads=4)
    assert layer(keras.random.normal((2, 10, 64))).shape == (2, 10, 64)
    ```
    """

    def __init__(
        self,
        *,
        filter_size: int,
        parameter_attention_heads: int = 1,
        parameter_attention_key_channels: int = 0,
        parameter_attention_value_channels: int = 0,
        attention_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.filter_size = filter_size
        self.parameter_attention_heads = parameter_attention_heads
        self.parameter_attention_key_channels = parameter_attention_key_channels
        self.parameter_attention_value_channels = parameter_attention_value_channels
        self.attention_dropout = attention_dropout
        self._check_channels(self.hidden_size or 0)
        policy = self.dtype_policy
        key = self.parameter_attention_key_channels
        self.query = projection("query", key, policy)
        self.output_projection = projection("output", self.hidden_size or 0, policy)
        self.row_dropout = Dropout(attention_dropout, name="row_dropout", dtype=policy)

    def _check_channels(self, width: int) -> None:
        """Replace channels of 0 by a width, and check that heads divide them."""
        key = self.parameter_attention_key_channels or width
        value = self.parameter_attention_value_channels or width
        self.parameter_attention_key_channels = key
        self.parameter_attention_value_channels = value
        check_heads(
            self.parameter_attention_heads,
            parameter_attention_key_channels=key,
            parameter_attention_value_channels=value,
        )

    def build(self, input_shape: Any = None) -> None:
        width = self.width(input_shape)
        self._check_channels(width)
        key = self.parameter_attention_key_channels
        value = self.parameter_attention_value_channels
        build_dense(self.query, width, key)
        build_dense(self.output_projection, value, width)
        self.memory_key = self._memory("memory_key", width, key)
        self.memory_value = self._memory("memory_value", width, value)

    def _memory(self, name: str, width: int, channels: int) -> keras.Variable:
        heads = self.parameter_attention_heads
        return self.add_weight(
            name=name,
            shape=(heads, self.filter_size, channels // heads),
            initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
        )

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        scale = x.shape[-1] ** 0.5
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
        channels = self.parameter_attention_value_channels
        merged = ops.reshape(heads, (*ops.shape(x)[:-1], channels))
        return self.output_projection(merged)

    def _queries(self, x: KerasTensor) -> KerasTensor:
        """Project to scaled queries, `[num_heads, batch * length, depth]`.

        Heads come first, as in the memory. If sentences came first, XLA would
        transpose the weights: `filter_size` values per head and position.
        """
        heads = self.parameter_attention_heads
        depth = self.parameter_attention_key_channels // heads
        query = ops.reshape(self.query(x), (-1, heads, depth))
        return ops.transpose(query * depth**-0.5, (1, 0, 2))

    def _by_sentence(self, weights: KerasTensor, x: KerasTensor) -> KerasTensor:
        """Turn `[head, batch * length, row]` into `[batch, head, length, row]`."""
        batch, length = ops.shape(x)[:2]
        shape = (self.parameter_attention_heads, batch, length, self.filter_size)
        return ops.transpose(ops.reshape(weights, shape), (1, 0, 2, 3))
