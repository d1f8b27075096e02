"""State that a model keeps while it decodes one position at a time."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from keras import KerasTensor, ops

from t2t_repro.layers.decoder_layer import LayerCache


class DecodingCache(TypedDict):
    """State of the decoder between two steps.

    Attributes:
        layers: Keys and values of every decoder layer.
        memory_mask: Boolean `[batch, 1, 1, source_length]`.
        words: Whether the token of a slot begins a word, 1 or 0, int32 `[batch,
            slots]`; only with positions counted in words.
    """

    layers: list[LayerCache]
    memory_mask: KerasTensor
    words: NotRequired[KerasTensor]


def grow_words(cache: DecodingCache, slots: int | KerasTensor) -> DecodingCache:
    """Append empty slots to `words`, if the cache has it.

    Args:
        cache: The cache.
        slots: New number of slots.
    """
    if "words" not in cache:
        return cache
    words = cache["words"]
    rows, before = ops.shape(words)
    more = ops.zeros((rows, slots - before), words.dtype)
    return {**cache, "words": ops.concatenate([words, more], axis=1)}


def write_words(
    cache: DecodingCache, begins: KerasTensor, first_slot: KerasTensor, append: bool
) -> DecodingCache:
    """Write the slots of one position to `words`.

    Args:
        cache: A cache with `words`.
        begins: Whether each token begins a word, 1 or 0, int32 `[batch, beam_size]`.
        first_slot: int32 scalar, the first of the `beam_size` slots to write.
        append: Whether to append the slots instead of writing them to `first_slot`.
    """
    if append:
        words = ops.concatenate([cache["words"], begins], axis=1)
    else:
        words = ops.slice_update(cache["words"], (0, first_slot), begins)
    return {**cache, "words": words}
