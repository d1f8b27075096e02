"""Prepared text as arrays: pairs, the order of the batches, and what is scored.

A batch is written as the numbers of its pairs, so that a long training run of several
seeds takes a few megabytes. No TensorFlow.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from t2t_repro.constants import INPUTS, PAD_ID, TARGETS
from t2t_repro.files import atomic_write

Arrays = dict[str, np.ndarray]
SIDES = (INPUTS, TARGETS)
# Of ids in large arrays.
IDS = np.uint16
LARGEST_VOCABULARY = np.iinfo(IDS).max + 1


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
    def of(cls, texts: Iterable[Sequence[int]]) -> Self:
        """Join texts, of which there may be none."""
        kept = list(texts)
        ids = [token for text in kept for token in text]
        return cls(np.array(ids, np.int64), np.array([*map(len, kept)], np.int64))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def ends(self) -> np.ndarray:
        """Number of ids up to the end of each text, int `[texts]`."""
        return np.cumsum(self.lengths)

    def padded(self, numbers: Sequence[int], length: int) -> np.ndarray:
        """Return some texts as int32 `[texts, length]`."""
        rows = np.full((len(numbers), length), PAD_ID, np.int32)
        where, ids, *_ = _filled(self, np.asarray(numbers), np.arange(len(numbers)))
        rows[where] = ids
        return rows


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Everything that training and scoring read.

    Attributes:
        train: Texts of the training pairs, by side, with EOS.
        kinds: Rows, source tokens and target tokens of every kind of batch.
        packed: Whether a row may have several pairs.
        order: Number of the kind of each batch; all seeds share it.
        pairs: Number of the batch, row in the batch, and number of the pair of every
            pair of a seed, int `[pairs, 3]`.
        dev: Texts of the dev pairs, by side, with EOS.
        sources: Sources to translate, with EOS, each once; there may be none.
    """

    train: Mapping[str, Texts]
    kinds: Sequence[tuple[int, int, int]]
    packed: bool
    order: np.ndarray
    pairs: Mapping[int, np.ndarray]
    dev: Mapping[str, Texts]
    sources: Texts

    def batches(self, seed: int, kind: int, count: int) -> Arrays:
        """Return features of a seed's first batches, uint16 `[count, rows, length]`."""
        rows, *lengths = self.kinds[kind]
        numbers = np.full(len(self.order), -1)
        numbers[np.flatnonzero(self.order == kind)[:count]] = np.arange(count)
        batch, row, pair = self.pairs[seed].T
        kept = numbers[batch] >= 0
        places = numbers[batch[kept]] * rows + row[kept]
        features = {}
        for side, length in zip(SIDES, lengths, strict=True):
            names = side, f"{side}_segmentation", f"{side}_position"
            where, *values = _filled(self.train[side], pair[kept], places)
            for name, value in zip(names, values, strict=True):
                array = np.zeros((count * rows, length), IDS)
                array[where] = value
                features[name] = array.reshape(count, rows, length)
        return features if self.packed else {side: features[side] for side in SIDES}

    def save(self, path: Path) -> None:
        """Write the corpus to a file."""
        texts = {"sources": self.sources}
        texts |= {f"train/{side}": self.train[side] for side in SIDES}
        texts |= {f"dev/{side}": self.dev[side] for side in SIDES}
        arrays = {f"pairs/{seed}": pairs for seed, pairs in self.pairs.items()}
        for name, each in texts.items():
            arrays |= {f"{name}/ids": each.ids, f"{name}/lengths": each.lengths}
        # Of the smallest types that hold the numbers.
        small = {
            name: array.astype(np.min_scalar_type(int(array.max(initial=0))))
            for name, array in arrays.items()
        }
        facts = {"kinds": self.kinds, "packed": self.packed, "order": self.order}
        save_arrays(path, {**facts, "seeds": [*self.pairs], **small})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a corpus."""
        with np.load(path) as file:
            arrays = {name: array.astype(np.int64) for name, array in file.items()}

        def texts(name: str) -> Texts:
            return Texts(arrays[f"{name}/ids"], arrays[f"{name}/lengths"])

        return cls(
            train={side: texts(f"train/{side}") for side in SIDES},
            kinds=[tuple(kind) for kind in arrays["kinds"].tolist()],
            packed=bool(arrays["packed"]),
            order=arrays["order"],
            pairs={x: arrays[f"pairs/{x}"] for x in arrays["seeds"].tolist()},
            dev={side: texts(f"dev/{side}") for side in SIDES},
            sources=texts("sources"),
        )


def save_arrays(path: Path, arrays: Mapping[str, object]) -> None:
    """Write arrays to a file, completely or not at all."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    atomic_write(path, file.getvalue())


def _filled(
    texts: Texts, pairs: np.ndarray, places: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    """Return row and column of every token, and its id, segment and position.

    `pairs` and `places` have the number and the row of each text; the texts of a row
    follow each other.
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
    where = np.repeat(places, sizes), np.repeat(starts - row_start, sizes) + position
    return where, texts.ids[source], np.repeat(segment, sizes), position
