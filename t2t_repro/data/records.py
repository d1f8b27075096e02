"""Shards: TFRecord files of `tf.train.Example`, tensor2tensor's format.

Source: tensor2tensor `data_generators/generator_utils.py` (`to_example`,
`generate_files`, `shuffle_dataset`).
"""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import tensorflow as tf

from t2t_repro.constants import INPUTS, TARGETS

# A record: its length (uint64, little-endian), the length's checksum, the content, the
# content's checksum (TensorFlow's core/lib/io/record_writer.cc).
_LENGTH = struct.Struct("<Q")
_CHECKSUM_BYTES = 4


def example_bytes(inputs: Sequence[int], targets: Sequence[int]) -> bytes:
    """Return the serialized `tf.train.Example` of a pair of id sequences."""
    example = tf.train.Example()
    for name, ids in ((INPUTS, inputs), (TARGETS, targets)):
        example.features.feature[name].int64_list.value.extend(ids)
    return example.SerializeToString(deterministic=True)


class ShardWriter:
    """Write records to several files in turn, and shuffle each file at the end.

    Each file is an even sample of the records, whatever their order. At most one file
    is in memory at a time.

    Args:
        paths: Files to write.
        seed: Seed of the order in each file; None keeps the order of writing.

    Raises:
        OSError: If a file cannot be written.
    """

    def __init__(self, paths: Sequence[Path], seed: int | None = None) -> None:
        self._paths = paths
        self._seed = seed
        self._count = 0
        with _system_errors():
            self._files = [tf.io.TFRecordWriter(str(path)) for path in paths]

    def write(self, records: Sequence[bytes]) -> None:
        """Append records, each to the next file in turn."""
        with _system_errors():
            for record in records:
                self._files[self._count % len(self._files)].write(record)
                self._count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._abandon()
            return
        with _system_errors():
            for file in self._files:
                file.close()
            if self._seed is not None:
                for index, path in enumerate(self._paths):
                    _shuffle(path, random.Random(f"{self._seed}/{index}"))

    def _abandon(self) -> None:
        """Close the files; on a full disk, closing fails as writing did."""
        for file in self._files:
            with contextlib.suppress(tf.errors.OpError):
                file.close()


@contextlib.contextmanager
def _system_errors() -> Iterator[None]:
    """Raise TensorFlow's errors as `OSError`, as Python's own files do."""
    try:
        yield
    except tf.errors.OpError as error:
        # TensorFlow's message is "<path>; <reason of the system>".
        raise OSError(error.message.rpartition("; ")[2]) from error


def _shuffle(path: Path, generator: random.Random) -> None:
    """Shuffle the records of a file, without starting TensorFlow's runtime.

    `tf.data` would start it, and then the CPU could no longer be split into replicas.
    """
    content = path.read_bytes()
    spans = _record_spans(content)
    generator.shuffle(spans)
    path.write_bytes(b"".join(content[start:end] for start, end in spans))


def _record_spans(content: bytes) -> list[tuple[int, int]]:
    """Return where each record starts and ends, including length and checksums."""
    spans, start = [], 0
    while start < len(content):
        (length,) = _LENGTH.unpack_from(content, start)
        end = start + _LENGTH.size + length + 2 * _CHECKSUM_BYTES
        spans.append((start, end))
        start = end
    return spans
