"""Encoder layer and stack (paper section 3.1, left half of figure 1)."""

from __future__ import annotations

import keras
from keras import KerasTensor

from t2t_repro.layers.options import AttentionRole, LayerOptions
from t2t_repro.layers.residual import ResidualConnection
from t2t_repro.layers.stack import LayerWithOptions, Stack
from t2t_repro.layers.sublayers import (
    apply_with_residual,
    make_attention,
    make_feed_forward,
)


@keras.saving.register_keras_serializable(package="t2t_repro")
class EncoderLayer(LayerWithOptions):
    """Self-attention and a feed-forward network, each with a residual connection.

    In the Weighted Transformer, one branched sublayer replaces the two, unless
    `LayerOptions.branch_residual` is "per_branch" or "shared".

    Args:
        options: Sizes and kinds of the sublayers.
        name: Name of the layer.
        dtype: Dtype or dtype policy.
        trainable: Whether the layer's weights are trained.

    Call arguments:
        x: `[batch, length, hidden_size]`.
        attention_mask: Boolean, True = may attend, `[batch, 1, 1 or length, length]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.
    """

    def __init__(
        self,
        options: LayerOptions,
        *,
        name: str | None = None,
        dtype: object = None,
        trainable: bool = True,
    ) -> None:
        super().__init__(options, name=name, dtype=dtype, trainable=trainable)
        role, policy = AttentionRole.ENCODER_SELF, self.dtype_policy
        self.self_attention = make_attention(
            options, role, name="self_attention", dtype=policy
        )
        self.self_attention_residual = ResidualConnection.from_options(
            options, name="self_attention_residual", dtype=policy
        )
        self.feed_forward = None
        if not options.network_in_attention:
            self.feed_forward = make_feed_forward(
                options, name="feed_forward", dtype=policy
            )
            self.feed_forward_residual = ResidualConnection.from_options(
                options, name="feed_forward_residual", dtype=policy
            )

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
        y = self.self_attention_residual.prepare(x)
        y = self.self_attention(y, y, attention_mask, training=training)
        x = self.self_attention_residual(x, y, training=training)
        if self.feed_forward is None:
            return x
        return apply_with_residual(
            self.feed_forward, self.feed_forward_residual, x, training
        )


@keras.saving.register_keras_serializable(package="t2t_repro")
class Encoder(Stack):
    """A stack of `EncoderLayer`s, followed by a normalization under pre-norm.

    Args:
        options: Options of every layer.
        num_layers: Number of layers (N).
        name: Name of the stack.
        dtype: Dtype or dtype policy of the stack and its layers.
        trainable: Whether the stack's weights are trained.

    Call arguments:
        x: Embedded inputs, `[batch, length, hidden_size]`.
        attention_mask: Boolean, True = may attend, `[batch, 1, 1 or length, length]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.
    """

    layer_class = EncoderLayer

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        for layer in self.layers:
            x = layer(x, attention_mask=attention_mask, training=training)
        return self.normalize(x)
