"""Positions counted in words or open brackets instead of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import KerasTensor, ops

from t2t_repro.choices import ColumnOrder, check_choice
from t2t_repro.layers.positions import sinusoidal_positions


@keras.saving.register_keras_serializable(package="t2t_repro")
class CountedPositions(keras.layers.Layer):
    """Encodings of a number that some tokens change, which are added to embeddings.

    A parser writes one leaf per word, with brackets around the leaves. If a source
    token has the index of its word, and a target position the number of leaves before
    it, then the next word to write is the one with the same number. The number of open
    brackets says which brackets can match.

    Differs from the paper, which encodes positions in tokens only. The encodings are
    `sinusoidal_positions` with their columns in another order. The columns that change
    fastest with the position then change slowly with the number, so that the sum of all
    encodings keeps each.

    Args:
        hidden_size: Width of the encoding.
        vocab_size: Size of the vocabulary.
        plus: Ids of the tokens that increase the number by one.
        minus: Ids of the tokens that decrease it by one.
        columns: "reversed", or "rolled" by half of the width.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        numbers: Values of the number, int32 `[...]`.

    Returns:
        Encodings in the compute dtype, `[..., hidden_size]`.

    Raises:
        ValueError: If `columns` is unknown.
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        vocab_size: int,
        plus: Sequence[int],
        minus: Sequence[int] = (),
        columns: ColumnOrder = "reversed",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("columns", columns, ColumnOrder)
        self.hidden_size = hidden_size
        self.vocab_size = vocab_size
        self.plus = tuple(plus)
        self.minus = tuple(minus)
        self.columns = columns
        self._changes = np.zeros(vocab_size, "int32")
        self._changes[list(self.plus)] = 1
        self._changes[list(self.minus)] = -1

    def changes(self, ids: KerasTensor) -> KerasTensor:
        """Return by how much each token changes the number.

        Args:
            ids: Token ids, int32 `[...]`.

        Returns:
            int32 `[...]`.
        """
        return ops.take(ops.convert_to_tensor(self._changes), ids, axis=0)

    def count(
        self, ids: KerasTensor, position: KerasTensor | None = None
    ) -> KerasTensor:
        """Return the number after each token.

        Args:
            ids: Token ids, int32 `[batch, length]`.
            position: Position of each token in its sentence, int32 `[batch, length]`,
                if a row has several sentences.

        Returns:
            int32 `[batch, length]`, counted from 0 in each sentence.
        """
        changes = self.changes(ids)
        counts = ops.cumsum(changes, axis=1)
        if position is None:
            return counts
        first = ops.arange(ops.shape(ids)[1])[None, :] - position
        return counts - ops.take_along_axis(counts - changes, first, axis=1)

    def call(self, numbers: KerasTensor) -> KerasTensor:
        signal = sinusoidal_positions(numbers, self.hidden_size)
        if self.columns == "reversed":
            signal = ops.flip(signal, axis=-1)
        else:
            signal = ops.roll(signal, self.hidden_size // 2, axis=-1)
        return ops.cast(signal, self.compute_dtype)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "vocab_size": self.vocab_size,
            "plus": self.plus,
            "minus": self.minus,
            "columns": self.columns,
        }
