"""Encodings of positions, counted in tokens, words or open brackets (section 3.5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import keras
import numpy as np
from keras import KerasTensor, ops

from t2t_repro.constants import ColumnOrder, PositionKind, SinusoidForm, check_choice

MAX_WAVELENGTH = 10_000.0  # in units of 2 pi; paper section 3.5
# kind of learned positions -> initial values
LEARNED: Mapping[str, Callable[[], keras.initializers.Initializer]] = {
    "learned": keras.initializers.GlorotUniform,
    # The mean square of sines and cosines is 1/2.
    "learned_large": lambda: keras.initializers.RandomNormal(stddev=math.sqrt(0.5)),
}


def sinusoidal_positions(
    positions: KerasTensor, hidden_size: int, form: SinusoidForm = "interleaved"
) -> KerasTensor:
    """Encode positions as sines and cosines of geometric wavelengths.

    The paper's form, with d = `hidden_size` and i = 0 .. d/2 - 1::

        PE(pos, 2i)   = sin(pos / 10000^(2i/d))
        PE(pos, 2i+1) = cos(pos / 10000^(2i/d))

    tensor2tensor's form puts all sines before all cosines. It divides by d/2 - 1
    instead of d/2, so that the longest wavelength is exactly 10000 * 2 pi. Marian's
    form has the paper's frequencies in tensor2tensor's order.

    Args:
        positions: Positions counted from 0, any dtype, `[...]`.
        hidden_size: Width of the encoding (d_model).
        form: "interleaved" (the paper), "concatenated" (tensor2tensor) or "halves"
            (Marian).

    Returns:
        Encodings, float32 `[..., hidden_size]`. If the width is odd, the last column
        is zero.
    """
    half = hidden_size // 2
    steps = max(half - 1, 1) if form == "concatenated" else half
    exponents = ops.arange(half, dtype="float32") / steps
    frequencies = ops.exp(-math.log(MAX_WAVELENGTH) * exponents)
    # [..., half]
    angles = ops.cast(positions, "float32")[..., None] * frequencies
    sines, cosines = ops.sin(angles), ops.cos(angles)
    if form == "interleaved":
        pairs = ops.stack([sines, cosines], axis=-1)
        signal = ops.reshape(pairs, (*ops.shape(positions), 2 * half))
    else:
        signal = ops.concatenate([sines, cosines], axis=-1)
    if hidden_size % 2:
        before = [[0, 0]] * (len(signal.shape) - 1)
        signal = ops.pad(signal, [*before, [0, 1]])
    return signal


@keras.saving.register_keras_serializable(package="t2t_repro")
class Positions(keras.layers.Layer):
    """Encodings of positions, which are added to embeddings.

    Args:
        hidden_size: Width of the encoding.
        kind: A form of `sinusoidal_positions`, "learned" (row (E) of the paper's
            Table 3; tensor2tensor `pos="emb"`), "learned_large" (the same, but the
            table starts as large as sinusoids), or "none".
        max_length: Number of learned positions. Encodings of later positions are zero,
            as in tensor2tensor.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        positions: Positions counted from 0, int32 `[...]`.

    Returns:
        Encodings in the compute dtype, `[..., hidden_size]`.

    Raises:
        ValueError: If `kind` is unknown, or learned positions have no `max_length`.

    Example:
    ```python
    positions = Positions(hidden_size=64, kind="interleaved")
    assert positions(np.arange(10)).shape == (10, 64)
    ```
    """

    def __init__(
        self,
        *,
        hidden_size: int,
        kind: PositionKind,
        max_length: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("kind", kind, PositionKind)
        if kind in LEARNED and max_length < 1:
            raise ValueError(
                "Learned positions need `max_length` of at least 1. "
                f"Received: max_length={max_length}"
            )
        self.hidden_size = hidden_size
        self.kind = kind
        self.max_length = max_length

    def build(self, input_shape: object = None) -> None:
        if self.kind in LEARNED:
            self.table = self.add_weight(
                name="table",
                shape=(self.max_length, self.hidden_size),
                initializer=LEARNED[self.kind](),
            )

    def call(self, positions: KerasTensor) -> KerasTensor:
        if self.kind == "none":
            shape = (*ops.shape(positions), self.hidden_size)
            return ops.zeros(shape, dtype=self.compute_dtype)
        if self.kind in LEARNED:
            known = ops.minimum(positions, self.max_length - 1)
            inside = ops.cast(positions < self.max_length, self.compute_dtype)
            table = ops.convert_to_tensor(self.table, dtype=self.compute_dtype)
            return ops.take(table, known, axis=0) * inside[..., None]
        form = cast("SinusoidForm", self.kind)
        signal = sinusoidal_positions(positions, self.hidden_size, form)
        return ops.cast(signal, self.compute_dtype)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {
            "hidden_size": self.hidden_size,
            "kind": self.kind,
            "max_length": self.max_length,
        }


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

    Example:
    ```python
    opening, closing = (2, 4), (3,)
    depth = CountedPositions(
        hidden_size=64, vocab_size=9, plus=opening, minus=closing
    )
    numbers = depth.count(np.array([[2, 4, 5, 3, 3]]))
    assert keras.ops.convert_to_numpy(numbers).tolist() == [[1, 2, 2, 1, 0]]
    assert depth(numbers).shape == (1, 5, 64)
    ```
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
        """Return the change of the number by each token.

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
