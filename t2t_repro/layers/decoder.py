"""Decoder layer and stack (paper section 3.1, right half of figure 1).

The stack runs in two ways that give the same numbers: `call` on whole target
sequences under a causal mask, and `step` on one position at a time with cached
keys and values.

In `step`, the hypotheses of a sentence lie along the length axis:
`[batch, beam_size, hidden_size]`. All of them write their keys and values into
one cache of `max_length * beam_size` slots, and a mask says which slots belong to
the history of which hypothesis. So a beam search that reorders its hypotheses
reorders that small mask and never copies a cache, and keys and values of the
encoder's output are shared by all hypotheses.
Differs from tensor2tensor (`beam_search.py`), which gathers every cache at every
step, the encoder's output included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import keras
from keras import KerasTensor, ops

from t2t_repro.layers.encoder import Encoder, EncoderLayer


class LayerCache(TypedDict):
    """Keys and values of one decoder layer.

    Attributes:
        self_key: `[batch, num_heads, slots, key_depth]`, slots = max_length * beam.
        self_value: `[batch, num_heads, slots, value_depth]`.
        memory_key: `[batch, num_heads, source_length, key_depth]`.
        memory_value: `[batch, num_heads, source_length, value_depth]`.
    """

    self_key: KerasTensor
    self_value: KerasTensor
    memory_key: KerasTensor
    memory_value: KerasTensor


@keras.saving.register_keras_serializable(package="t2t_repro")
class DecoderLayer(EncoderLayer):
    """An encoder layer with attention to the encoder's output in its middle.

    Args:
        **options: As for `EncoderLayer`.

    Call arguments:
        x: Target representation, `[batch, target_length, hidden_size]`.
        memory: Encoder output, `[batch, source_length, hidden_size]`.
        memory_attention_mask: Boolean, `[batch, 1, 1, source_length]`.

    Returns:
        `[batch, target_length, hidden_size]`; a position sees those before it.
    """

    is_causal = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.memory_attention = self._attention("memory_attention")
        self.memory_attention_residual = self._residual("memory_attention_residual")

    def _branch_holder(self) -> str:
        return f"{self.options.branched_in_decoder}_attention"

    def build(self, input_shape: object = None) -> None:
        super().build()
        self.memory_attention.build()
        self.memory_attention_residual.build()

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        memory_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        def attend_to_self(y: KerasTensor) -> KerasTensor:
            return self.self_attention(y, y, training=training)

        def attend_to_memory(y: KerasTensor) -> KerasTensor:
            return self.memory_attention(
                y, memory, memory_attention_mask, training=training
            )

        return self._sublayers(x, attend_to_self, attend_to_memory, training)

    def _sublayers(
        self,
        x: KerasTensor,
        attend_to_self: Callable[[KerasTensor], KerasTensor],
        attend_to_memory: Callable[[KerasTensor], KerasTensor],
        training: bool | None = None,
    ) -> KerasTensor:
        """Apply the three sublayers, however the two attentions get their keys."""
        x = self.self_attention_residual(x, sublayer=attend_to_self, training=training)
        x = self.memory_attention_residual(
            x, sublayer=attend_to_memory, training=training
        )
        return self.apply_feed_forward(x, training=training)

    def initial_cache(self, memory: KerasTensor) -> LayerCache:
        """Project the encoder's output once.

        Args:
            memory: Encoder output, `[batch, source_length, hidden_size]`.

        Returns:
            A cache without slots for positions of the target.
        """
        key, value = self.memory_attention.project_memory(memory)
        batch, heads = ops.shape(key)[0], self.self_attention.num_heads

        def empty(depth: int) -> KerasTensor:
            return ops.zeros((batch, heads, 0, depth), dtype=key.dtype)

        return {
            "self_key": empty(key.shape[-1]),
            "self_value": empty(value.shape[-1]),
            "memory_key": key,
            "memory_value": value,
        }

    @staticmethod
    def grow_cache(cache: LayerCache, slots: int | KerasTensor) -> LayerCache:
        """Make empty slots behind those that there are.

        Args:
            cache: Of `initial_cache` or of `step`.
            slots: How many there are to be.
        """
        grown = cache.copy()
        for name in ("self_key", "self_value"):
            batch, heads, before, depth = ops.shape(cache[name])
            more = ops.zeros((batch, heads, slots - before, depth), cache[name].dtype)
            grown[name] = ops.concatenate([cache[name], more], axis=2)
        return grown

    def step(
        self,
        x: KerasTensor,
        cache: LayerCache,
        first_slot: KerasTensor,
        history: KerasTensor,
        memory_attention_mask: KerasTensor | None = None,
    ) -> tuple[KerasTensor, LayerCache]:
        """Advance every hypothesis by one position.

        Args:
            x: One position of each hypothesis, `[batch, beam_size, hidden_size]`.
            cache: Keys and values of the positions before.
            first_slot: int32 scalar, the first of the `beam_size` slots to write.
            history: Boolean `[batch, 1, beam_size, slots]`, the slots on the path
                of each hypothesis, the newly written one included.
            memory_attention_mask: Boolean, `[batch, 1, 1, source_length]`.

        Returns:
            `[batch, beam_size, hidden_size]` and the cache with the new slots.
        """
        new_cache = cache.copy()

        def attend_to_history(y: KerasTensor) -> KerasTensor:
            key, value = self.self_attention.project_memory(y)
            start = (0, 0, first_slot, 0)
            key = ops.slice_update(cache["self_key"], start, key)
            value = ops.slice_update(cache["self_value"], start, value)
            new_cache.update(self_key=key, self_value=value)
            visible = self.self_attention.visible_history(history, first_slot)
            return self.self_attention.attend(y, key, value, visible)

        def attend_to_memory(y: KerasTensor) -> KerasTensor:
            return self.memory_attention.attend(
                y, cache["memory_key"], cache["memory_value"], memory_attention_mask
            )

        return self._sublayers(x, attend_to_history, attend_to_memory), new_cache


@keras.saving.register_keras_serializable(package="t2t_repro")
class Decoder(Encoder):
    """A stack of `DecoderLayer`s; under pre-norm with a last normalisation.

    Args:
        num_layers: Number of layers (N).
        **options: As for `Encoder`.

    Call arguments:
        x: Embedded, shifted targets, `[batch, target_length, hidden_size]`.
        memory: Encoder output, `[batch, source_length, hidden_size]`.
        memory_attention_mask: Boolean, `[batch, 1, 1, source_length]`.

    Returns:
        `[batch, target_length, hidden_size]`.
    """

    layer_class = DecoderLayer

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        memory_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        for layer in self.layers:
            x = layer(
                x,
                memory,
                memory_attention_mask=memory_attention_mask,
                training=training,
            )
        return self.normalize(x)

    def initial_cache(self, memory: KerasTensor) -> list[LayerCache]:
        """Make the caches of all layers; see `DecoderLayer.initial_cache`."""
        return [layer.initial_cache(memory) for layer in self.layers]

    def grow_cache(
        self, caches: list[LayerCache], slots: int | KerasTensor
    ) -> list[LayerCache]:
        """Make room in the caches of all layers; see `DecoderLayer.grow_cache`."""
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
    ) -> tuple[KerasTensor, list[LayerCache]]:
        """Advance every hypothesis by one position; see `DecoderLayer.step`."""
        new_caches = []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, cache = layer.step(x, cache, first_slot, history, memory_attention_mask)
            new_caches.append(cache)
        return self.normalize(x), new_caches
