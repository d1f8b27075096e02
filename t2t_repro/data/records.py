"""Shards: TFRecord files of `tf.train.Example`, tensor2tensor's format.

Source: tensor2tensor `data_generators/generator_utils.py` (`to_example`,
`generate_files`, `shuffle_dataset`).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import tensorflow as tf

from t2t_repro.constants import INPUTS, TARGETS
from t2t_repro.errors import UserError

# A record: its length (uint64, little-endian), that length's checksum, the content,
# its checksum (https://www.tensorflow.org/tutorials/load_data/tfrecord).
_LENGTH = struct.Struct("<Q")
_BYTES_AROUND_CONTENT = 8 + 4 + 4


def example_bytes(inputs: Sequence[int], targets: Sequence[int]) -> bytes:
    """Gives the serialized `tf.train.Example` of a pair of id sequences."""
    example = tf.train.Example()
    feature = example.features.feature
    feature[INPUTS].int64_list.value.extend(inputs)
    feature[TARGETS].int64_list.value.extend(targets)
    return example.SerializeToString(deterministic=True)


class ShardWriter:
    """Deals records out to files in turn; closing shuffles within each file.

    Each file is an even sample of the records whatever their order was, and at most
    one file at a time is held in memory.

    Args:
        paths: the files to write.
        seed: decides the order within each file; None keeps the order of writing.
    """

    def __init__(self, paths: Sequence[Path], seed: int | None = None) -> None:
        self._paths = paths
        self._seed = seed
        self._writers = [tf.io.TFRecordWriter(str(path)) for path in paths]
        self._count = 0

    def write(self, record: bytes) -> None:
        """Appends a record to the file whose turn it is.

        Raises:
            OSError: if the file system does not take it.
        """
        try:
            self._writers[self._count % len(self._writers)].write(record)
        except tf.errors.OpError as error:
            raise OSError(error.message) from error
        self._count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for writer in self._writers:
            writer.close()
        if error is None and self._seed is not None:
            for index, path in enumerate(self._paths):
                _shuffle(path, random.Random(f"{self._seed}/{index}"))


def _shuffle(path: Path, generator: random.Random) -> None:
    content = path.read_bytes()
    spans = _record_spans(content, path)
    generator.shuffle(spans)
    path.write_bytes(b"".join(content[start:end] for start, end in spans))


def _record_spans(content: bytes, path: Path) -> list[tuple[int, int]]:
    spans = []
    start = 0
    while start < len(content):
        if start + _LENGTH.size > len(content):
            raise UserError(f"{path} was cut short while it was written: run it again")
        (length,) = _LENGTH.unpack_from(content, start)
        end = start + length + _BYTES_AROUND_CONTENT
        spans.append((start, end))
        start = end
    return spans
