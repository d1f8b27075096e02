"""Encoder and decoder: their layers and stacks (paper section 3.1, figure 1)."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, TypedDict

import keras
from keras import KerasTensor, ops

from t2t_repro.layers.attention import MultiHeadAttention, with_padding_mask
from t2t_repro.layers.branches import BranchedFeedForward
from t2t_repro.layers.options import AttentionRole, LayerStructure
from t2t_repro.layers.residual import ResidualConnection
from t2t_repro.layers.sublayers import make_attention, make_feed_forward, split_options


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


def _shape(options: LayerStructure, input_shape: Any) -> Any:
    """Return the shape to build sublayers with."""
    if options.hidden_size is not None:
        return (None, None, options.hidden_size)
    return input_shape


class LayerWithOptions(keras.layers.Layer):
    """Base class of encoder and decoder layers and of their stacks.

    Args:
        num_heads: Number of attention heads (h).
        filter_size: Inner width of the feed-forward network (d_ff).
        **kwargs: Other fields of `LayerOptions`, and arguments of `keras.layers.Layer`.
    """

    def __init__(self, *, num_heads: int, filter_size: int, **kwargs: Any) -> None:
        sizes = {"num_heads": num_heads, "filter_size": filter_size}
        options, others = split_options(sizes | kwargs)
        super().__init__(**others)
        self.supports_masking = True
        self.options = options

    def make_attention(self, role: AttentionRole, name: str) -> MultiHeadAttention:
        """Make the attention of a role, not yet built."""
        return make_attention(self.options, role, name=name, dtype=self.dtype_policy)

    def make_residual(self, name: str) -> ResidualConnection:
        """Make a residual connection, not yet built."""
        return ResidualConnection.from_options(
            self.options, name=name, dtype=self.dtype_policy
        )

    def make_network(self) -> None:
        """Make the network and its residual, unless an attention contains it."""
        self.feed_forward = None
        if not self.options.network_in_attention:
            self.feed_forward = make_feed_forward(
                self.options, name="feed_forward", dtype=self.dtype_policy
            )
            self.feed_forward_residual = self.make_residual("feed_forward_residual")

    def build_network(self, shape: Any) -> None:
        """Build the network and its residual, if the layer has a separate network."""
        if self.feed_forward is not None:
            self.feed_forward.build(shape)
            self.feed_forward_residual.build(shape)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | dataclasses.asdict(self.options)


class Stack(LayerWithOptions):
    """Layers of one class, followed by a normalization under pre-norm.

    Args:
        num_layers: Number of layers (N).
        **kwargs: Arguments of every layer, and of `keras.layers.Layer`.
    """

    layer_class: ClassVar[type[LayerWithOptions]]

    def __init__(self, *, num_layers: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_layers = num_layers
        options, policy = dataclasses.asdict(self.options), self.dtype_policy
        self.layers = [
            self.layer_class(**options, name=f"layer_{i}", dtype=policy)
            for i in range(num_layers)
        ]
        self.final_normalization = None
        # A post-norm layer ends in a normalization already.
        if self.options.norm == "pre":
            self.final_normalization = keras.layers.LayerNormalization(
                epsilon=self.options.norm_epsilon,
                name="final_normalization",
                dtype=policy,
            )

    def build(self, input_shape: Any = None) -> None:
        shape = _shape(self.options, input_shape)
        for layer in self.layers:
            layer.build(shape)
        if self.final_normalization is not None:
            self.final_normalization.build(shape)

    def normalize(self, x: KerasTensor) -> KerasTensor:
        """Apply the final normalization, if any, to the output of the last layer.

        Args:
            x: `[batch, length, hidden_size]`.

        Returns:
            `[batch, length, hidden_size]`.
        """
        return x if self.final_normalization is None else self.final_normalization(x)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"num_layers": self.num_layers}


@keras.saving.register_keras_serializable(package="t2t_repro")
class EncoderLayer(LayerWithOptions):
    """Self-attention and a feed-forward network, each with a residual connection.

    In the Weighted Transformer, one branched sublayer replaces the two, unless
    `branch_residual` is "per_branch" or "shared".

    Args:
        num_heads: Number of attention heads (h).
        filter_size: Inner width of the feed-forward network (d_ff).
        **kwargs: Other options of `LayerStructure` and of the sublayers
            (`MultiHeadAttention`, `FeedForward`, `ResidualConnection`, ...), such as
            `norm`, `attention_dropout`, `relu_dropout` and
            `layer_prepostprocess_dropout`; and arguments of `keras.layers.Layer`.
            `hidden_size` is that of the input by default.

    Call arguments:
        x: `[batch, length, hidden_size]`.
        attention_mask: Boolean, True = may attend, `[batch, 1, 1 or length, length]`.
        padding_mask: Boolean `[batch, length]`, False at padding; by default, the mask
            that Keras attached to `x`, if there is one.
        training: Whether dropout is active.
        return_attention_scores: Whether to return the weights of self-attention, too.

    Returns:
        `[batch, length, hidden_size]`; if asked for, also the weights, see
        `MultiHeadAttention`.

    Example:
    ```python
    layer = EncoderLayer(
        num_heads=8, filter_size=256, layer_prepostprocess_dropout=0.1
    )
    ids = np.array([[5, 3, 1, 0], [4, 6, 7, 1]])
    x = keras.random.normal((2, 4, 64))
    y, scores = layer(x, padding_mask=ids != 0, return_attention_scores=True)
    assert y.shape == (2, 4, 64)
    assert scores.shape == (2, 8, 4, 4)
    assert not np.any(scores[0, :, :, 3])
    ```
    """

    def __init__(self, *, num_heads: int, filter_size: int, **kwargs: Any) -> None:
        super().__init__(num_heads=num_heads, filter_size=filter_size, **kwargs)
        self.self_attention = self.make_attention(
            AttentionRole.ENCODER_SELF, "self_attention"
        )
        self.self_attention_residual = self.make_residual("self_attention_residual")
        self.make_network()

    def build(self, input_shape: Any = None) -> None:
        shape = _shape(self.options, input_shape)
        self.self_attention.build(shape)
        self.self_attention_residual.build(shape)
        self.build_network(shape)

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        padding_mask: KerasTensor | None = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> KerasTensor | tuple[KerasTensor, KerasTensor]:
        mask = with_padding_mask(attention_mask, padding_mask)
        y, scores = self.self_attention_residual.prepare(x), None
        if return_attention_scores:
            y, scores = self.self_attention(
                y, y, mask, training=training, return_attention_scores=True
            )
        else:
            y = self.self_attention(y, y, mask, training=training)
        x = self.self_attention_residual(x, y, training=training)
        if self.feed_forward is not None:
            x = apply_with_residual(
                self.feed_forward, self.feed_forward_residual, x, training
            )
        return x if scores is None else (x, scores)


@keras.saving.register_keras_serializable(package="t2t_repro")
class Encoder(Stack):
    """A stack of `EncoderLayer` layers, followed by a normalization under pre-norm.

    Args:
        num_layers: Number of layers (N).
        **kwargs: Arguments of `EncoderLayer`.

    Call arguments:
        x: Embedded inputs, `[batch, length, hidden_size]`.
        attention_mask: See `EncoderLayer`.
        padding_mask: See `EncoderLayer`.
        training: Whether dropout is active.

    Returns:
        `[batch, length, hidden_size]`.

    Example:
    ```python
    encoder = Encoder(num_layers=2, num_heads=8, filter_size=256, norm="pre")
    x = keras.random.normal((2, 10, 64))
    assert encoder(x, padding_mask=np.ones((2, 10))).shape == (2, 10, 64)
    ```
    """

    layer_class = EncoderLayer

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        padding_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        mask = with_padding_mask(attention_mask, padding_mask)
        for layer in self.layers:
            x = layer(x, attention_mask=mask, training=training)
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
    two attentions has branches. `branch_residual` decides whether it also
    replaces the network, or the network has separate branches.

    Args:
        num_heads: Number of attention heads (h).
        filter_size: Inner width of the feed-forward network (d_ff).
        **kwargs: As for `EncoderLayer`.

    Call arguments:
        x: Target representation, `[batch, target_length, hidden_size]`.
        memory: Encoder output, `[batch, source_length, hidden_size]`.
        memory_attention_mask: Boolean, True = may attend,
            `[batch, 1, 1 or target_length, source_length]`.
        self_attention_mask: Boolean, `[batch, 1, target_length, target_length]`, in
            addition to the causal mask.
        padding_mask: Boolean `[batch, target_length]`, False at padding; by default,
            the mask that Keras attached to `x`, if there is one.
        memory_padding_mask: Boolean `[batch, source_length]`; by default, the mask that
            Keras attached to `memory`.
        training: Whether dropout is active.

    Returns:
        `[batch, target_length, hidden_size]`. A position does not depend on later
        ones.

    Example:
    ```python
    layer = DecoderLayer(num_heads=8, filter_size=256)
    memory = keras.random.normal((2, 7, 64))
    x = keras.random.normal((2, 10, 64))
    assert layer(x, memory, memory_padding_mask=np.ones((2, 7))).shape == (2, 10, 64)
    ```
    """

    def __init__(self, *, num_heads: int, filter_size: int, **kwargs: Any) -> None:
        super().__init__(num_heads=num_heads, filter_size=filter_size, **kwargs)
        # The order of construction decides the initial weights of a seed.
        self.self_attention = self.make_attention(
            AttentionRole.DECODER_SELF, "self_attention"
        )
        self.self_attention_residual = self.make_residual("self_attention_residual")
        self.network_role = self.options.network_role
        self.make_network()
        self.memory_attention = self.make_attention(
            AttentionRole.MEMORY, "memory_attention"
        )
        self.memory_attention_residual = self.make_residual("memory_attention_residual")

    def build(self, input_shape: Any = None) -> None:
        shape = _shape(self.options, input_shape)
        self.self_attention.build(shape)
        self.self_attention_residual.build(shape)
        self.build_network(shape)
        self.memory_attention.build(shape)
        self.memory_attention_residual.build(shape)

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        memory_attention_mask: KerasTensor | None = None,
        self_attention_mask: KerasTensor | None = None,
        padding_mask: KerasTensor | None = None,
        memory_padding_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        self_mask = with_padding_mask(self_attention_mask, padding_mask)
        memory_mask = with_padding_mask(memory_attention_mask, memory_padding_mask)
        y = self.self_attention_residual.prepare(x)
        y = self.self_attention(y, y, self_mask, training=training)
        x = self.self_attention_residual(x, y, training=training)
        x = self._apply_network_after(AttentionRole.DECODER_SELF, x, training)
        y = self.memory_attention_residual.prepare(x)
        y = self.memory_attention(y, memory, memory_mask, training=training)
        x = self.memory_attention_residual(x, y, training=training)
        return self._apply_network_after(AttentionRole.MEMORY, x, training)

    def _apply_network_after(
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

        key, value = grown(cache["self_key"]), grown(cache["self_value"])
        return {**cache, "self_key": key, "self_value": value}

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
        x = self._apply_network_after(AttentionRole.DECODER_SELF, x)
        y = self.memory_attention_residual.prepare(x)
        y = self.memory_attention.attend(
            y, cache["memory_key"], cache["memory_value"], memory_attention_mask
        )
        x = self.memory_attention_residual(x, y)
        new_cache: LayerCache = {**cache, "self_key": key, "self_value": value}
        return self._apply_network_after(AttentionRole.MEMORY, x), new_cache


@keras.saving.register_keras_serializable(package="t2t_repro")
class Decoder(Stack):
    """A stack of `DecoderLayer` layers, followed by a normalization under pre-norm.

    Args:
        num_layers: Number of layers (N).
        **kwargs: Arguments of `DecoderLayer`.

    Call arguments:
        x: Embedded, shifted targets, `[batch, target_length, hidden_size]`.
        memory: Encoder output, `[batch, source_length, hidden_size]`.
        memory_attention_mask: See `DecoderLayer`, as for the other masks.
        self_attention_mask: See `DecoderLayer`.
        padding_mask: See `DecoderLayer`.
        memory_padding_mask: See `DecoderLayer`.
        training: Whether dropout is active.

    Returns:
        `[batch, target_length, hidden_size]`.

    Example:
    ```python
    decoder = Decoder(num_layers=2, num_heads=8, filter_size=256)
    memory = keras.random.normal((2, 7, 64))
    assert decoder(keras.random.normal((2, 10, 64)), memory).shape == (2, 10, 64)
    ```
    """

    layer_class = DecoderLayer

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        memory_attention_mask: KerasTensor | None = None,
        self_attention_mask: KerasTensor | None = None,
        padding_mask: KerasTensor | None = None,
        memory_padding_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        self_mask = with_padding_mask(self_attention_mask, padding_mask)
        memory_mask = with_padding_mask(memory_attention_mask, memory_padding_mask)
        for layer in self.layers:
            x = layer(
                x,
                memory,
                memory_attention_mask=memory_mask,
                self_attention_mask=self_mask,
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
