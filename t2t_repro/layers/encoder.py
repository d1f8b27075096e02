"""Encoder layer and stack (paper section 3.1, left half of figure 1)."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import keras
from keras import KerasTensor

from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.options import LayerOptions
from t2t_repro.layers.residual import ResidualConnection
from t2t_repro.layers.sublayers import (
    make_attention,
    make_feed_forward,
    make_residual,
)


@keras.saving.register_keras_serializable(package="t2t_repro")
class EncoderLayer(keras.layers.Layer):
    """Self-attention, then a feed-forward network, each with its residual.

    With branched attention (the Weighted Transformer) the two are one sublayer.

    Args:
        name: Of the layer.
        dtype: Dtype or dtype policy.
        trainable: Whether the layer's weights are trained.
        **options: Those of `LayerOptions`.

    Call arguments:
        x: `[batch, length, hidden_size]`.
        attention_mask: Boolean, True = may attend, `[batch, 1, 1 or length, length]`.

    Returns:
        `[batch, length, hidden_size]`.
    """

    is_causal = False

    def __init__(
        self,
        *,
        name: str | None = None,
        dtype: object = None,
        trainable: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.options = LayerOptions(**options)
        self.self_attention = self._attention("self_attention")
        self.self_attention_residual = self._residual("self_attention_residual")
        self.feed_forward = None
        if self.options.branched == "none":
            self.feed_forward = make_feed_forward(
                self.options, name="feed_forward", dtype=self.dtype_policy
            )
            self.feed_forward_residual = self._residual("feed_forward_residual")

    def _attention(self, name: str) -> MultiheadAttention:
        is_self_attention = name == "self_attention"
        return make_attention(
            self.options,
            name=name,
            dtype=self.dtype_policy,
            causal=self.is_causal and is_self_attention,
            neighbourhood=self.options.neighbourhood if is_self_attention else 0,
            branched=self.options.branched if name == self._branch_holder() else "none",
        )

    def _branch_holder(self) -> str:
        """Name the attention that branches, where branching is asked for."""
        return "self_attention"

    def _residual(self, name: str) -> ResidualConnection:
        return make_residual(self.options, name=name, dtype=self.dtype_policy)

    def build(self, input_shape: object = None) -> None:
        self.self_attention.build()
        self.self_attention_residual.build()
        if self.feed_forward is not None:
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
        if self.feed_forward is None:
            return x
        feed_forward = functools.partial(self.feed_forward, training=training)
        return self.feed_forward_residual(x, sublayer=feed_forward, training=training)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | dataclasses.asdict(self.options)


@keras.saving.register_keras_serializable(package="t2t_repro")
class Encoder(keras.layers.Layer):
    """A stack of `EncoderLayer`s; under pre-norm with a last normalisation.

    Args:
        num_layers: Number of layers (N).
        name: Of the stack.
        dtype: Dtype or dtype policy of the stack and its layers.
        trainable: Whether the stack's weights are trained.
        **options: Those of `LayerOptions`.

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
        name: str | None = None,
        dtype: object = None,
        trainable: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.num_layers = num_layers
        self.options = LayerOptions(**options)
        self.layers = [
            self.layer_class(name=f"layer_{i}", dtype=self.dtype_policy, **options)
            for i in range(num_layers)
        ]
        self.final_normalization = None
        if self.options.norm == "pre":
            # Post-norm layers end in a normalisation of their own.
            self.final_normalization = keras.layers.LayerNormalization(
                epsilon=self.options.norm_epsilon,
                name="final_normalization",
                dtype=self.dtype_policy,
            )

    def build(self, input_shape: object = None) -> None:
        for layer in self.layers:
            layer.build()
        if self.final_normalization is not None:
            self.final_normalization.build((None, None, self.options.hidden_size))

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
        own = {"num_layers": self.num_layers}
        return super().get_config() | own | dataclasses.asdict(self.options)
