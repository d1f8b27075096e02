"""State that a model keeps while it decodes one position at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from keras import KerasTensor, ops

from t2t_repro.layers.decoder_layer import LayerCache


class DecodingCache(TypedDict):
    """State of the decoder between two steps.

    Attributes:
        layers: Keys and values of every decoder layer.
        memory_mask: Boolean `[batch, 1, 1, source_length]`.
        changes: For each of the target's counters, by how much the token of each slot
            changes its number, int32 `[batch, slots]`; only with counters.
    """

    layers: list[LayerCache]
    memory_mask: KerasTensor
    changes: NotRequired[list[KerasTensor]]


def grow_changes(cache: DecodingCache, slots: int | KerasTensor) -> DecodingCache:
    """Append empty slots to `changes`, if the cache has it.

    Args:
        cache: The cache.
        slots: New number of slots.
    """
    if "changes" not in cache:
        return cache

    def grown(x: KerasTensor) -> KerasTensor:
        rows, before = ops.shape(x)
        more = ops.zeros((rows, slots - before), x.dtype)
        return ops.concatenate([x, more], axis=1)

    return {**cache, "changes": [grown(x) for x in cache["changes"]]}


def write_changes(
    cache: DecodingCache,
    changes: Sequence[KerasTensor],
    first_slot: KerasTensor,
    append: bool,
) -> DecodingCache:
    """Write the slots of one position to `changes`.

    Args:
        cache: A cache with `changes`.
        changes: For each counter, by how much each token changes its number, int32
            `[batch, beam_size]`.
        first_slot: int32 scalar, the first of the `beam_size` slots to write.
        append: Whether to append the slots instead of writing them to `first_slot`.
    """
    pairs = zip(cache["changes"], changes, strict=True)
    if append:
        written = [ops.concatenate([x, new], axis=1) for x, new in pairs]
    else:
        written = [ops.slice_update(x, (0, first_slot), new) for x, new in pairs]
    return {**cache, "changes": written}


def sums_of_paths(cache: DecodingCache, history: KerasTensor) -> list[KerasTensor]:
    """Return the number of each counter after the last token of each hypothesis.

    Args:
        cache: A cache with `changes`.
        history: Boolean `[batch, beam_size, slots]`, the slots on each path.

    Returns:
        int32 `[batch, beam_size]` per counter.
    """
    return [
        ops.sum(ops.where(history, x[:, None, :], 0), axis=-1) for x in cache["changes"]
    ]
