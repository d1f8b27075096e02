"""Training data of a few pairs, written as shards without preparing any text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.data.pipeline import Shards
from t2t_repro.data.records import example_bytes, record_writer

Pair = tuple[list[int], list[int]]
FIRST_ID = 3  # after the special ones


def random_pairs(
    count: int, longest: int, vocab_size: int, *, seed: int = 0
) -> list[Pair]:
    """Return distinct pairs of at most `longest` random ids that end in EOS."""
    generator = random.Random(seed)
    pairs: dict[tuple[int, ...], list[int]] = {}
    while len(pairs) < count:
        sides = [
            generator.choices(
                range(FIRST_ID, vocab_size), k=generator.randint(1, longest - 1)
            )
            for _ in range(2)
        ]
        pairs.setdefault((*sides[0], EOS_ID), [*sides[1], EOS_ID])
    return [(list(source), target) for source, target in pairs.items()]


def write_shards(folder: Path, pairs: Sequence[Pair], count: int = 2) -> Shards:
    """Write pairs to `count` TFRecord files in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"shard-{number}" for number in range(count)]
    for number, path in enumerate(paths):
        with record_writer(path) as write:
            for pair in pairs[number::count]:
                write(example_bytes(*pair))
    return Shards(tuple(str(path) for path in paths))


def examples_in(path: str | Path) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Read the ids of both sides of every example of a shard."""
    found = []
    for record in tf.data.TFRecordDataset(str(path)):
        features = tf.train.Example.FromString(record.numpy()).features.feature
        found.append(
            tuple(tuple(features[k].int64_list.value) for k in ("inputs", "targets"))
        )
    return found


def rows_of(batch) -> list[Pair]:
    """Return the pairs of a batch without padding and without rows of padding."""
    sides = (batch["inputs"].numpy(), batch["targets"].numpy())
    rows = [tuple(unpadded(row) for row in pair) for pair in zip(*sides, strict=True)]
    return [row for row in rows if row != ([], [])]


def unpadded(row: np.ndarray) -> list[int]:
    return [int(token) for token in row[: np.count_nonzero(row != PAD_ID)]]
