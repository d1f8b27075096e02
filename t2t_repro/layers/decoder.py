"""Decoder stack (paper section 3.1, right half of figure 1)."""

from __future__ import annotations

import keras
from keras import KerasTensor

from t2t_repro.layers.decoder_layer import DecoderLayer, LayerCache
from t2t_repro.layers.stack import Stack


@keras.saving.register_keras_serializable(package="t2t_repro")
class Decoder(Stack):
    """A stack of `DecoderLayer`s, followed by a normalization under pre-norm.

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
