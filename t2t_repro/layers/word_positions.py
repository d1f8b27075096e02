"""Positions counted in words, for targets that represent the words of the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import KerasTensor, ops

from t2t_repro.layers.positions import sinusoidal_positions


@keras.saving.register_keras_serializable(package="t2t_repro")
class WordPositions(keras.layers.Layer):
    """Encodings of positions counted in words, which are added to embeddings.

    A parser writes one leaf per word, with brackets between the leaves. If a source
    token has the index of its word, and a target position the number of leaves before
    it, then the next word to write is the one with the same number. Ma et al. 2017
    ("Deterministic Attention for Sequence-to-Sequence Constituent Parsing") also align
    both sides by this count, but fix the attention to that word.

    Differs from the paper, which encodes positions in tokens only. The encodings are
    `sinusoidal_positions` with their columns in reverse order. The columns that change
    fastest with the position then change slowest with the word, so a sum of both
    encodings keeps both.

    Args:
        hidden_size: Width of the encoding.
        vocab_size: Size of the vocabulary.
        word_starts: Ids of the tokens that begin a word.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        words: Positions counted in words, from 0, int32 `[...]`.

    Returns:
        Encodings in the compute dtype, `[..., hidden_size]`.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        vocab_size: int,
        word_starts: Sequence[int],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.vocab_size = vocab_size
        self.word_starts = tuple(word_starts)
        self._begins = np.zeros(vocab_size, "int32")
        self._begins[list(self.word_starts)] = 1

    def begins(self, ids: KerasTensor) -> KerasTensor:
        """Return 1 for each token that begins a word, and 0 for the others.

        Args:
            ids: Token ids, int32 `[...]`.

        Returns:
            int32 `[...]`.
        """
        return ops.take(ops.convert_to_tensor(self._begins), ids, axis=0)

    def count(
        self, ids: KerasTensor, position: KerasTensor | None = None
    ) -> KerasTensor:
        """Count the words that begin up to and including each token.

        Args:
            ids: Token ids, int32 `[batch, length]`.
            position: Position of each token in its sentence, int32 `[batch, length]`,
                if a row has several sentences.

        Returns:
            int32 `[batch, length]`.
        """
        begins = self.begins(ids)
        counts = ops.cumsum(begins, axis=1)
        if position is None:
            return counts
        first = ops.arange(ops.shape(ids)[1])[None, :] - position
        return counts - ops.take_along_axis(counts - begins, first, axis=1)

    def call(self, words: KerasTensor) -> KerasTensor:
        signal = ops.flip(sinusoidal_positions(words, self.hidden_size), axis=-1)
        return ops.cast(signal, self.compute_dtype)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "vocab_size": self.vocab_size,
            "word_starts": self.word_starts,
        }
