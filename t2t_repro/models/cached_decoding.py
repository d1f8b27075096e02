"""Decoding one position at a time, with the keys and values of earlier positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NotRequired, TypedDict

from keras import KerasTensor, ops

from t2t_repro.constants import DecoderStart
from t2t_repro.layers.attention import padding_mask
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.encoder_decoder import Decoder, LayerCache
from t2t_repro.layers.positions import CountedPositions, Positions


class DecodingCache(TypedDict):
    """State of the decoder between two steps.

    Attributes:
        layers: Keys and values of every decoder layer.
        memory_mask: Boolean `[batch, 1, 1, source_length]`.
        changes: By how much the token of each slot changes the numbers that target
            positions are counted in, int32 `[batch, numbers, slots]`, if there are any.
    """

    layers: list[LayerCache]
    memory_mask: KerasTensor
    changes: NotRequired[KerasTensor]


class CachedDecoding:
    """The part of `Transformer` that decodes one position at a time.

    A search calls `initial_cache`, then `grow_cache` if the shapes must not change, and
    `decode_step` for every position.
    """

    encode: Callable[..., KerasTensor]
    decoder: Decoder
    target_embedding: TokenEmbedding
    target_positions: Positions
    target_counted: list[CountedPositions]
    softmax: TokenEmbedding
    decoder_start: DecoderStart

    def initial_cache(self, inputs: KerasTensor) -> DecodingCache:
        """Encode the source and project it for every decoder layer.

        Args:
            inputs: Source ids, int32 `[batch, source_length]`.

        Returns:
            A cache without slots for target positions.
        """
        memory = self.encode(inputs, training=False)
        cache: DecodingCache = {
            "layers": self.decoder.initial_cache(memory),
            "memory_mask": padding_mask(inputs),
        }
        if self.target_counted:
            rows, counters = ops.shape(inputs)[0], len(self.target_counted)
            # Not the number 0: in a graph, the number of slots must be unknown.
            cache["changes"] = ops.zeros((rows, counters, 0 * rows), dtype="int32")
        return cache

    def softmax_columns(self) -> KerasTensor:
        """Return the matrix of the softmax in the form that a step multiplies by."""
        return self.softmax.columns()

    def grow_cache(
        self, cache: DecodingCache, slots: int | KerasTensor
    ) -> DecodingCache:
        """Append empty slots for keys and values of target positions.

        Args:
            cache: Cache from `initial_cache`, or from `decode_step` without `append`.
            slots: Number of positions times beam size, at least the current number.

        Returns:
            The cache with that many slots.
        """
        layers = self.decoder.grow_cache(cache["layers"], slots)
        grown: DecodingCache = {**cache, "layers": layers}
        if "changes" in cache:
            rows, counters, before = ops.shape(cache["changes"])
            more = ops.zeros((rows, counters, slots - before), dtype="int32")
            grown["changes"] = ops.concatenate([cache["changes"], more], axis=2)
        return grown

    def with_start(self, x: KerasTensor, positions: KerasTensor) -> KerasTensor:
        """Add the embedding of padding to position 0 if targets begin with it.

        Args:
            x: `[batch, length, hidden_size]`, with zeros in place of the embedding.
            positions: Positions counted from 0, int32 `[length]` or `[batch, length]`.

        Returns:
            Of the shape of `x`.
        """
        if self.decoder_start == "zeros":
            return x
        is_first = ops.cast(ops.equal(positions, 0), x.dtype)
        return x + is_first[..., None] * self.target_embedding.padding_row()

    def decode_step(
        self,
        ids: KerasTensor,
        position: KerasTensor,
        history: KerasTensor,
        cache: DecodingCache,
        append: bool = False,
        columns: KerasTensor | None = None,
    ) -> tuple[KerasTensor, DecodingCache]:
        """Predict the next token of every hypothesis.

        Args:
            ids: The token before this position (PAD_ID at position 0), int32
                `[batch, beam_size]`.
            position: int32 scalar, counted from 0.
            history: Boolean `[batch, beam_size, slots]`, the cache slots on each
                hypothesis's path. Hypothesis k writes slot p * beam_size + k at
                position p.
            cache: Cache from `grow_cache` or the previous step.
            append: Whether to append slots to the cache, which begins without slots.
                Otherwise it must have slots for all positions.
            columns: The result of `softmax_columns`, which makes a step faster.

        Returns:
            Logits, float32 `[batch, beam_size, target_vocab_size]`, and the cache.
        """
        first_slot = position * ids.shape[1]
        positions = ops.reshape(position, (1,))
        x = self.target_embedding(ids) + self.target_positions(positions)
        x = self.with_start(x, positions)
        if self.target_counted:
            changes = self._add_changes(ids, first_slot, cache["changes"], append)
            cache = {**cache, "changes": changes}
            for number, counted in enumerate(self.target_counted):
                path = ops.where(history, changes[:, number, None, :], 0)
                x = x + counted(ops.sum(path, axis=-1))
        x, layers = self.decoder.step(
            x,
            cache["layers"],
            first_slot,
            history[:, None, :, :],
            cache["memory_mask"],
            append=append,
        )
        return self.softmax.logits(x, columns), {**cache, "layers": layers}

    def _add_changes(
        self,
        ids: KerasTensor,
        first_slot: KerasTensor,
        changes: KerasTensor,
        append: bool,
    ) -> KerasTensor:
        """Add the changes of the numbers at one more position to the earlier ones."""
        new = ops.stack([counted.changes(ids) for counted in self.target_counted], 1)
        if append:
            return ops.concatenate([changes, new], axis=2)
        return ops.slice_update(changes, (0, 0, first_slot), new)
