"""Encoder layer and stack (paper section 3.1, left half of figure 1)."""

from __future__ import annotations

import functools
from typing import Any

import keras
from keras import KerasTensor

from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.residual import ResidualConnection


@keras.saving.register_keras_serializable(package="t2t_repro")
class EncoderLayer(keras.layers.Layer):
    """Self-attention, then a feed-forward network, each with its residual.

    Args:
        hidden_size: Width of the representation (d_model).
        filter_size: Inner width of the feed-forward network (d_ff).
        num_heads: Attention heads (h).
        key_channels: Width of queries and keys over all heads (h d_k).
        value_channels: Width of values over all heads (h d_v).
        norm: "post" (the paper) or "pre".
        residual_dropout: Dropout on each sublayer's output (P_drop).
        attention_dropout: Dropout on attention weights.
        relu_dropout: Dropout after the ReLU.
        norm_epsilon: Of the layer normalisations.

    Call arguments:
        x: `[batch, length, hidden_size]`.
        attention_mask: Boolean, True = may attend, `[batch, 1, 1 or length, length]`.

    Returns:
        `[batch, length, hidden_size]`.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        filter_size: int,
        num_heads: int,
        key_channels: int,
        value_channels: int,
        norm: str = "post",
        residual_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        relu_dropout: float = 0.0,
        norm_epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.filter_size = filter_size
        self.num_heads = num_heads
        self.key_channels = key_channels
        self.value_channels = value_channels
        self.norm = norm
        self.residual_dropout = residual_dropout
        self.attention_dropout = attention_dropout
        self.relu_dropout = relu_dropout
        self.norm_epsilon = norm_epsilon
        self.self_attention = self._attention("self_attention")
        self.self_attention_residual = self._residual("self_attention_residual")
        self.feed_forward = FeedForward(
            hidden_size=hidden_size,
            filter_size=filter_size,
            dropout_rate=relu_dropout,
            name="feed_forward",
            dtype=self.dtype_policy,
        )
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def _attention(self, name: str) -> MultiheadAttention:
        return MultiheadAttention(
            hidden_size=self.hidden_size,
            num_heads=self.num_heads,
            key_channels=self.key_channels,
            value_channels=self.value_channels,
            dropout_rate=self.attention_dropout,
            name=name,
            dtype=self.dtype_policy,
        )

    def _residual(self, name: str) -> ResidualConnection:
        return ResidualConnection(
            hidden_size=self.hidden_size,
            norm=self.norm,
            dropout_rate=self.residual_dropout,
            epsilon=self.norm_epsilon,
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, input_shape: object = None) -> None:
        self.self_attention.build()
        self.self_attention_residual.build()
        self.feed_forward.build()
        self.feed_forward_residual.build()

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        def attend_to_self(y: KerasTensor) -> KerasTensor:
            return self.self_attention(y, y, attention_mask, training=training)

        x = self.self_attention_residual(x, sublayer=attend_to_self, training=training)
        return self.apply_feed_forward(x, training=training)

    def apply_feed_forward(
        self, x: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        """Apply the feed-forward sublayer with its residual, shape unchanged."""
        feed_forward = functools.partial(self.feed_forward, training=training)
        return self.feed_forward_residual(x, sublayer=feed_forward, training=training)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "filter_size": self.filter_size,
            "num_heads": self.num_heads,
            "key_channels": self.key_channels,
            "value_channels": self.value_channels,
            "norm": self.norm,
            "residual_dropout": self.residual_dropout,
            "attention_dropout": self.attention_dropout,
            "relu_dropout": self.relu_dropout,
            "norm_epsilon": self.norm_epsilon,
        }


@keras.saving.register_keras_serializable(package="t2t_repro")
class Encoder(keras.layers.Layer):
    """A stack of `EncoderLayer`s; under pre-norm with a last normalisation.

    Args:
        num_layers: Number of layers (N).
        norm: "post" (the paper) or "pre".
        norm_epsilon: Of the layer normalisations.
        name: Of the stack.
        dtype: Dtype or dtype policy of the stack and its layers.
        trainable: Whether the stack's weights are trained.
        **options: `EncoderLayer`'s other arguments.

    Call arguments:
        x: Embedded inputs, `[batch, length, hidden_size]`.
        attention_mask: Boolean, True = may attend, `[batch, 1, 1 or length, length]`.

    Returns:
        `[batch, length, hidden_size]`.
    """

    layer_class = EncoderLayer

    def __init__(
        self,
        *,
        num_layers: int,
        norm: str = "post",
        norm_epsilon: float = 1e-6,
        name: str | None = None,
        dtype: object = None,
        trainable: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.num_layers = num_layers
        self._options = options | {"norm": norm, "norm_epsilon": norm_epsilon}
        self.layers = [
            self.layer_class(
                name=f"layer_{i}", dtype=self.dtype_policy, **self._options
            )
            for i in range(num_layers)
        ]
        self.final_normalization = None
        if norm == "pre":
            # Post-norm layers end in a normalisation of their own.
            self.final_normalization = keras.layers.LayerNormalization(
                epsilon=norm_epsilon,
                name="final_normalization",
                dtype=self.dtype_policy,
            )

    def build(self, input_shape: object = None) -> None:
        for layer in self.layers:
            layer.build()
        if self.final_normalization is not None:
            self.final_normalization.build((None, None, self._options["hidden_size"]))

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        for layer in self.layers:
            x = layer(x, attention_mask=attention_mask, training=training)
        return self.normalize(x)

    def normalize(self, x: KerasTensor) -> KerasTensor:
        """Apply the last normalisation, where there is one."""
        return x if self.final_normalization is None else self.final_normalization(x)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {"num_layers": self.num_layers} | self._options
