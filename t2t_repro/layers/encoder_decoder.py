"""Encoder and decoder: their layers and stacks (paper section 3.1, figure 1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypedDict

import keras
from keras import KerasTensor, ops

from t2t_repro import registry
from t2t_repro.layers.attention import MultiheadAttention
from t2t_repro.layers.branches import BranchedFeedForward
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.options import AttentionRole, LayerOptions, with_options
from t2t_repro.layers.parameter_attention import ParameterAttention
from t2t_repro.layers.residual import ResidualConnection
from t2t_repro.layers.weighted import (
    BranchedAttention,
    WeightedFeedForward,
    WeightedHeads,
)


def make_attention(
    options: LayerOptions, role: AttentionRole, **kwargs: Any
) -> MultiheadAttention:
    """Make the attention sublayer of a role.

    Args:
        options: Options of the encoder or decoder layer.
        role: Place of the sublayer.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Returns:
        The sublayer, not yet built.

    Raises:
        UsageError: If no attention is registered under `options.self_attention`.
    """
    if options.is_branched(role) and not options.network_in_attention:
        return WeightedHeads.from_options(options, role, **kwargs)
    if options.is_branched(role):
        return BranchedAttention.from_options(options, role, **kwargs)
    if not role.is_self_attention:
        return MultiheadAttention.from_options(options, role, **kwargs)
    registered = registry.attentions.get(options.self_attention)
    make = getattr(registered, "from_options", registered)
    return make(options, role, **kwargs)


def make_feed_forward(options: LayerOptions, **kwargs: Any) -> keras.layers.Layer:
    """Make the position-wise sublayer of a layer that has a separate one.

    Args:
        options: Options of the encoder or decoder layer.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Returns:
        The sublayer, not yet built.
    """
    if options.branched != "none":
        per_branch = options.branch_residual == "per_branch"
        network = BranchedFeedForward if per_branch else WeightedFeedForward
        return network.from_options(options, **kwargs)
    if options.feed_forward == "parameter_attention":
        return ParameterAttention.from_options(options, **kwargs)
    return FeedForward.from_options(options, **kwargs)


def apply_with_residual(
    sublayer: keras.layers.Layer,
    residual: ResidualConnection,
    x: KerasTensor,
    training: bool | None = None,
) -> KerasTensor:
    """Apply a sublayer with one input, and its residual connection.

    Args:
        sublayer: Function from and to `[batch, length, hidden_size]`.
        residual: Connection around the sublayer.
        x: `[batch, length, hidden_size]`; for `BranchedFeedForward`, the input of every
            branch, `[batch, num_heads, length, hidden_size]`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.
    """
    output = sublayer(residual.prepare(x), training=training)
    if isinstance(sublayer, BranchedFeedForward):
        x = sublayer.average(x)
    return residual(x, output, training=training)


class LayerWithOptions(keras.layers.Layer):
    """A Keras layer that is configured by `LayerOptions`.

    Args:
        options: Sizes and kinds of the sublayers.
        name: Name of the layer.
        dtype: Dtype or dtype policy.
        trainable: Whether the layer's weights are trained.
    """

    def __init__(
        self,
        options: LayerOptions,
        *,
        name: str | None = None,
        dtype: object = None,
        trainable: bool = True,
    ) -> None:
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.options = options

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {"options": dataclasses.asdict(self.options)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        return cls(**with_options(config))


class Stack(LayerWithOptions):
    """Layers of one class, followed by a normalization under pre-norm.

    Args:
        options: Options of every layer.
        num_layers: Number of layers (N).
        name: Name of the stack.
        dtype: Dtype or dtype policy of the stack and its layers.
        trainable: Whether the stack's weights are trained.
    """

    layer_class: ClassVar[type[LayerWithOptions]]

    def __init__(
        self,
        options: LayerOptions,
        *,
        num_layers: int,
        name: str | None = None,
        dtype: object = None,
        trainable: bool = True,
    ) -> None:
        super().__init__(options, name=name, dtype=dtype, trainable=trainable)
        self.num_layers = num_layers
        self.layers = [
            self.layer_class(options, name=f"layer_{i}", dtype=self.dtype_policy)
            for i in range(num_layers)
        ]
        self.final_normalization = None
        # A post-norm layer ends in a normalization already.
        if options.norm == "pre":
            self.final_normalization = keras.layers.LayerNormalization(
                epsilon=options.norm_epsilon,
                name="final_normalization",
                dtype=self.dtype_policy,
            )

    def build(self, input_shape: object = None) -> None:
        for layer in self.layers:
            layer.build()
        if self.final_normalization is not None:
            self.final_normalization.build((None, None, self.options.hidden_size))

    def normalize(self, x: KerasTensor) -> KerasTensor:
        """Apply the final normalization, if there is one, to the last layer's output.

        Args:
            x: `[batch, length, hidden_size]`.

        Returns:
            `[batch, length, hidden_size]`.
        """
        return x if self.final_normalization is None else self.final_normalization(x)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {"num_layers": self.num_layers}


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
    """A stack of `EncoderLayer` layers, followed by a normalization under pre-norm.

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


class LayerCache(TypedDict):
    """Keys and values of one decoder layer.

    Attributes:
        self_key: `[batch, num_heads, slots, key_depth]`. There are max_length * beam
            slots from the start or, with `append`, `beam` more after every step.
        self_value: `[batch, num_heads, slots, value_depth]`.
        memory_key: `[batch, num_heads, source_length, key_depth]`.
        memory_value: `[batch, num_heads, source_length, value_depth]`.
    """

    self_key: KerasTensor
    self_value: KerasTensor
    memory_key: KerasTensor
    memory_value: KerasTensor


@keras.saving.register_keras_serializable(package="t2t_repro")
class DecoderLayer(LayerWithOptions):
    """Causal self-attention, attention to the encoder's output, and a network.

    Each of the three has a residual connection. In the Weighted Transformer, one of the
    two attentions has branches. `LayerOptions.branch_residual` decides whether it also
    replaces the network, or the network has separate branches.

    Args:
        options: Sizes and kinds of the sublayers.
        name: Name of the layer.
        dtype: Dtype or dtype policy.
        trainable: Whether the layer's weights are trained.

    Call arguments:
        x: Target representation, `[batch, target_length, hidden_size]`.
        memory: Encoder output, `[batch, source_length, hidden_size]`.
        memory_attention_mask: Boolean, True = may attend,
            `[batch, 1, 1 or target_length, source_length]`.
        self_attention_mask: Boolean, `[batch, 1, target_length, target_length]`, in
            addition to the causal mask.
        training: Whether dropout is active.

    Returns:
        `[batch, target_length, hidden_size]`. A position does not depend on later
        ones.
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
        policy = self.dtype_policy
        # The order of construction decides the initial weights of a seed.
        self.self_attention = make_attention(
            options, AttentionRole.DECODER_SELF, name="self_attention", dtype=policy
        )
        self.self_attention_residual = ResidualConnection.from_options(
            options, name="self_attention_residual", dtype=policy
        )
        self.network_role = options.network_role
        self.feed_forward = None
        if not options.network_in_attention:
            self.feed_forward = make_feed_forward(
                options, name="feed_forward", dtype=policy
            )
            self.feed_forward_residual = ResidualConnection.from_options(
                options, name="feed_forward_residual", dtype=policy
            )
        self.memory_attention = make_attention(
            options, AttentionRole.MEMORY, name="memory_attention", dtype=policy
        )
        self.memory_attention_residual = ResidualConnection.from_options(
            options, name="memory_attention_residual", dtype=policy
        )

    def build(self, input_shape: object = None) -> None:
        self.self_attention.build()
        self.self_attention_residual.build()
        if self.feed_forward is not None:
            self.feed_forward.build()
            self.feed_forward_residual.build()
        self.memory_attention.build()
        self.memory_attention_residual.build()

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        memory_attention_mask: KerasTensor | None = None,
        self_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        y = self.self_attention_residual.prepare(x)
        y = self.self_attention(y, y, self_attention_mask, training=training)
        x = self.self_attention_residual(x, y, training=training)
        x = self._after(AttentionRole.DECODER_SELF, x, training)
        y = self.memory_attention_residual.prepare(x)
        y = self.memory_attention(y, memory, memory_attention_mask, training=training)
        x = self.memory_attention_residual(x, y, training=training)
        return self._after(AttentionRole.MEMORY, x, training)

    def _after(
        self, role: AttentionRole, x: KerasTensor, training: bool | None = None
    ) -> KerasTensor:
        """Apply the network if it follows the attention of this role."""
        if self.feed_forward is None or role is not self.network_role:
            return x
        return apply_with_residual(
            self.feed_forward, self.feed_forward_residual, x, training
        )

    def initial_cache(self, memory: KerasTensor) -> LayerCache:
        """Project the encoder's output once.

        Args:
            memory: Encoder output, `[batch, source_length, hidden_size]`.

        Returns:
            A cache without slots for positions of the target.
        """
        key, value = self.memory_attention.project_memory(memory)
        # No slots yet; later ones have these shapes.
        self_key, self_value = self.self_attention.project_memory(memory[:, :0])
        return {
            "self_key": self_key,
            "self_value": self_value,
            "memory_key": key,
            "memory_value": value,
        }

    @staticmethod
    def grow_cache(cache: LayerCache, slots: int | KerasTensor) -> LayerCache:
        """Append empty slots to the cache.

        Args:
            cache: Cache from `initial_cache` or `step`.
            slots: New number of slots.

        Returns:
            The cache with that many slots.
        """

        def grown(x: KerasTensor) -> KerasTensor:
            batch, heads, before, depth = ops.shape(x)
            more = ops.zeros((batch, heads, slots - before, depth), x.dtype)
            return ops.concatenate([x, more], axis=2)

        return {
            "self_key": grown(cache["self_key"]),
            "self_value": grown(cache["self_value"]),
            "memory_key": cache["memory_key"],
            "memory_value": cache["memory_value"],
        }

    def step(
        self,
        x: KerasTensor,
        cache: LayerCache,
        first_slot: KerasTensor,
        history: KerasTensor,
        memory_attention_mask: KerasTensor | None = None,
        append: bool = False,
    ) -> tuple[KerasTensor, LayerCache]:
        """Advance every hypothesis by one position.

        Args:
            x: One position of each hypothesis, `[batch, beam_size, hidden_size]`.
            cache: Keys and values of the earlier positions.
            first_slot: int32 scalar, the first of the `beam_size` slots to write.
            history: Boolean `[batch, 1, beam_size, slots]`, the slots on the path
                of each hypothesis, including the one that this step writes.
            memory_attention_mask: Boolean, `[batch, 1, 1, source_length]`.
            append: Whether to append the slots to the cache, which changes its shape,
                instead of writing them to `first_slot`.

        Returns:
            `[batch, beam_size, hidden_size]` and the cache with the new slots.
        """
        y = self.self_attention_residual.prepare(x)
        key, value = self.self_attention.project_memory(y)
        if append:
            key = ops.concatenate([cache["self_key"], key], axis=2)
            value = ops.concatenate([cache["self_value"], value], axis=2)
        else:
            key = ops.slice_update(cache["self_key"], (0, 0, first_slot, 0), key)
            value = ops.slice_update(cache["self_value"], (0, 0, first_slot, 0), value)
        visible = self.self_attention.visible_history(history, first_slot)
        y = self.self_attention.attend(y, key, value, visible)
        x = self.self_attention_residual(x, y)
        x = self._after(AttentionRole.DECODER_SELF, x)
        y = self.memory_attention_residual.prepare(x)
        y = self.memory_attention.attend(
            y, cache["memory_key"], cache["memory_value"], memory_attention_mask
        )
        x = self.memory_attention_residual(x, y)
        new_cache: LayerCache = {
            "self_key": key,
            "self_value": value,
            "memory_key": cache["memory_key"],
            "memory_value": cache["memory_value"],
        }
        return self._after(AttentionRole.MEMORY, x), new_cache


@keras.saving.register_keras_serializable(package="t2t_repro")
class Decoder(Stack):
    """A stack of `DecoderLayer` layers, followed by a normalization under pre-norm.

    Args:
        options: Options of every layer.
        num_layers: Number of layers (N).
        name: Name of the stack.
        dtype: Dtype or dtype policy of the stack and its layers.
        trainable: Whether the stack's weights are trained.

    Call arguments:
        x: Embedded, shifted targets, `[batch, target_length, hidden_size]`.
        memory: Encoder output, `[batch, source_length, hidden_size]`.
        memory_attention_mask: See `DecoderLayer`.
        self_attention_mask: See `DecoderLayer`.
        training: Whether dropout is active.

    Returns:
        `[batch, target_length, hidden_size]`.
    """

    layer_class = DecoderLayer

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        memory_attention_mask: KerasTensor | None = None,
        self_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        for layer in self.layers:
            x = layer(
                x,
                memory,
                memory_attention_mask=memory_attention_mask,
                self_attention_mask=self_attention_mask,
                training=training,
            )
        return self.normalize(x)

    def initial_cache(self, memory: KerasTensor) -> list[LayerCache]:
        """Make the caches of all layers; see `DecoderLayer.initial_cache`."""
        return [layer.initial_cache(memory) for layer in self.layers]

    def grow_cache(
        self, caches: list[LayerCache], slots: int | KerasTensor
    ) -> list[LayerCache]:
        """Grow the caches of all layers; see `DecoderLayer.grow_cache`."""
        return [
            layer.grow_cache(cache, slots)
            for layer, cache in zip(self.layers, caches, strict=True)
        ]

    def step(
        self,
        x: KerasTensor,
        caches: list[LayerCache],
        first_slot: KerasTensor,
        history: KerasTensor,
        memory_attention_mask: KerasTensor | None = None,
        append: bool = False,
    ) -> tuple[KerasTensor, list[LayerCache]]:
        """Advance every hypothesis by one position; see `DecoderLayer.step`."""
        new_caches = []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, cache = layer.step(
                x, cache, first_slot, history, memory_attention_mask, append
            )
            new_caches.append(cache)
        return self.normalize(x), new_caches
