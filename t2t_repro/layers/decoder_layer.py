"""Decoder layer (paper section 3.1, right half of figure 1).

The layer runs in two ways that return the same numbers: `call` on whole target
sequences under a causal mask, and `step` on one position at a time with cached
keys and values.

In `step`, the hypotheses of a sentence are on the length axis:
`[batch, beam_size, hidden_size]`. All of them write their keys and values into
one cache with a slot per position and hypothesis, and a mask holds the slots that
belong to the history of each hypothesis. A beam search that reorders its hypotheses
therefore reorders this small mask and never copies a cache, and all hypotheses share
the keys and values of the encoder's output.
Differs from tensor2tensor (`beam_search.py`), which gathers every cache at every
step, including the encoder's output.
"""

from __future__ import annotations

from typing import TypedDict

import keras
from keras import KerasTensor, ops

from t2t_repro.layers.options import AttentionRole, LayerOptions
from t2t_repro.layers.residual import ResidualConnection
from t2t_repro.layers.stack import LayerWithOptions
from t2t_repro.layers.sublayers import (
    apply_with_residual,
    make_attention,
    make_feed_forward,
)


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
