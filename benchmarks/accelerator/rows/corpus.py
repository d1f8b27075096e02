"""Prepared text as arrays: pairs, the order of the batches, and what is scored.

A batch is written as the numbers of its pairs, so that a long training run of several
seeds takes a few megabytes.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from benchmarks.accelerator.arrays import Arrays, read_arrays
from t2t_repro.constants import (
    INPUTS,
    INPUTS_POSITION,
    INPUTS_SEGMENTATION,
    PAD_ID,
    TARGETS,
    TARGETS_POSITION,
    TARGETS_SEGMENTATION,
)
from t2t_repro.files import atomic_write

# Of ids in large arrays.
IDS = np.uint16
LARGEST_VOCABULARY = np.iinfo(IDS).max + 1
_SIDES = {
    INPUTS: (INPUTS_SEGMENTATION, INPUTS_POSITION),
    TARGETS: (TARGETS_SEGMENTATION, TARGETS_POSITION),
}


@dataclasses.dataclass(frozen=True)
class Texts:
    """Texts of different lengths, one after the other.

    Attributes:
        ids: Ids of all texts, int `[tokens]`.
        lengths: Number of ids of each text, int `[texts]`.
    """

    ids: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> Self:
        """Join texts, of which there may be none."""
        ids = [token for text in texts for token in text]
        lengths = [len(text) for text in texts]
        return cls(np.array(ids, np.int64), np.array(lengths, np.int64))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def ends(self) -> np.ndarray:
        """Number of ids up to the end of each text, int `[texts]`."""
        return np.cumsum(self.lengths)

    def padded(self, numbers: Sequence[int], length: int) -> np.ndarray:
        """Return some texts as int32 `[texts, length]`."""
        rows = np.full((len(numbers), length), PAD_ID, np.int32)
        ends = self.ends
        for row, number in zip(rows, numbers, strict=True):
            size = self.lengths[number]
            row[:size] = self.ids[ends[number] - size : ends[number]]
        return rows


@dataclasses.dataclass(frozen=True)
class Order:
    """Batches of one seed, in order.

    Attributes:
        shapes: Number of the shape of each batch, int `[batches]`.
        sizes: Number of pairs of each batch, int `[batches]`.
        rows: Row of each pair in its batch, batch by batch, int `[sum of sizes]`.
        pairs: Number of each pair, int `[sum of sizes]`.
    """

    shapes: np.ndarray
    sizes: np.ndarray
    rows: np.ndarray
    pairs: np.ndarray

    def of_shape(self, shape: int, count: int) -> Order:
        """Return the first batches of a shape."""
        wanted = self.shapes == shape
        wanted &= np.cumsum(wanted) <= count
        kept = np.repeat(wanted, self.sizes)
        return Order(
            self.shapes[wanted], self.sizes[wanted], self.rows[kept], self.pairs[kept]
        )


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Everything that training and scoring read.

    Attributes:
        sides: Texts of the training pairs, by side, with EOS.
        shapes: Rows, and tokens of the source and of the target side, of every kind of
            batch.
        packed: Whether a row may have several pairs.
        orders: Batches of each seed.
        dev: Texts of the dev pairs, by side, with EOS.
        sources: Sources to translate, with EOS, each once; there may be none.
        data_digest: Digest of the prepared data.
    """

    sides: Mapping[str, Texts]
    shapes: Sequence[tuple[int, int, int]]
    packed: bool
    orders: Mapping[int, Order]
    dev: Mapping[str, Texts]
    sources: Texts
    data_digest: str

    def batches(self, seed: int, shape: int, count: int) -> dict[str, np.ndarray]:
        """Return the first batches of a shape.

        Args:
            seed: Seed of the order.
            shape: Number of the shape.
            count: Number of batches.

        Returns:
            Features of the model, uint16 `[count, rows, length]`.
        """
        order = self.orders[seed].of_shape(shape, count)
        rows, *lengths = self.shapes[shape]
        places = np.repeat(np.arange(count), order.sizes) * rows + order.rows
        features = {}
        for (side, names), length in zip(_SIDES.items(), lengths, strict=True):
            filled = _filled(self.sides[side], order.pairs, places)
            for name, flat in zip((side, *names), filled, strict=True):
                array = np.zeros((count * rows, length), IDS)
                array[flat[0], flat[1]] = flat[2]
                features[name] = array.reshape(count, rows, length)
        return features if self.packed else {s: features[s] for s in _SIDES}

    def save(self, path: Path) -> None:
        """Write the corpus to a file."""
        arrays: Arrays = {
            "shapes": np.array(self.shapes, np.int32),
            "packed": np.array(self.packed),
            "seeds": np.array(list(self.orders), np.int32),
            "data_digest": np.array(self.data_digest),
            **_named("sources", self.sources),
        }
        for side in _SIDES:
            arrays |= _named(f"train/{side}", self.sides[side])
            arrays |= _named(f"dev/{side}", self.dev[side])
        for seed, order in self.orders.items():
            arrays |= _named(f"order/{seed}", order)
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        atomic_write(path, file.getvalue())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a corpus.

        Raises:
            UserError: If there is none.
        """
        arrays = read_arrays(path)

        def texts(name: str) -> Texts:
            return Texts(**_group(arrays, name))

        return cls(
            sides={side: texts(f"train/{side}") for side in _SIDES},
            shapes=[tuple(map(int, shape)) for shape in arrays["shapes"]],
            packed=bool(arrays["packed"]),
            orders={
                int(seed): Order(**_group(arrays, f"order/{seed}"))
                for seed in arrays["seeds"]
            },
            dev={side: texts(f"dev/{side}") for side in _SIDES},
            sources=texts("sources"),
            data_digest=str(arrays["data_digest"]),
        )


def _filled(
    texts: Texts, pairs: np.ndarray, places: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return row, column and value of ids, segments and positions of packed rows.

    Args:
        texts: Texts of one side.
        pairs: Number of each text to write.
        places: Number of the row of each text; those of a row follow each other.
    """
    sizes = texts.lengths[pairs]
    ends = np.cumsum(sizes)
    starts = ends - sizes
    is_first = np.diff(places, prepend=-1) != 0
    row_number = np.cumsum(is_first) - 1
    row_start = starts[is_first][row_number]
    segment = np.arange(len(pairs)) - np.flatnonzero(is_first)[row_number] + 1
    position = np.arange(ends[-1] if len(ends) else 0) - np.repeat(starts, sizes)
    source = np.repeat(texts.ends[pairs] - sizes, sizes) + position
    row = np.repeat(places, sizes)
    column = np.repeat(starts - row_start, sizes) + position
    values = (texts.ids[source], np.repeat(segment, sizes), position)
    return [(row, column, value) for value in values]


def _named(name: str, group: Texts | Order) -> Arrays:
    return {
        f"{name}/{field.name}": _small(getattr(group, field.name))
        for field in dataclasses.fields(group)
    }


def _group(arrays: Arrays, name: str) -> Arrays:
    prefix = f"{name}/"
    return {
        key.removeprefix(prefix): array.astype(np.int64)
        for key, array in arrays.items()
        if key.startswith(prefix) and "/" not in key.removeprefix(prefix)
    }


def _small(array: np.ndarray) -> np.ndarray:
    """Return an array of the smallest type that holds its numbers."""
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))
