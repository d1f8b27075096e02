"""Shards: TFRecord files of `tf.train.Example`, tensor2tensor's format.

Written without TensorFlow: its import takes longer than preparing Multi30k, and one
call for each record is several times slower than the few lines here. A test reads the
files back with TensorFlow.

Source: tensor2tensor `data_generators/generator_utils.py` (`to_example`,
`generate_files`, `shuffle_dataset`); the formats are in TensorFlow's
`core/example/example.proto` and `core/lib/io/record_writer.cc`.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from t2t_repro.constants import INPUTS, TARGETS

# A record: its length (uint64, little-endian), that length's checksum, the content,
# the content's checksum.
_LENGTH = struct.Struct("<Q")
_CHECKSUM_BYTES = 4

_CASTAGNOLI = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_ALL_ONES = 0xFFFFFFFF

# Protocol buffers: the tag of a length-delimited field is its number, 3 bits left, + 2.
_FIELD_1, _FIELD_2, _FIELD_3 = b"\x0a", b"\x12", b"\x1a"


def example_bytes(inputs: Sequence[int], targets: Sequence[int]) -> bytes:
    """Gives the serialized `tf.train.Example` of a pair of id sequences."""
    features = _feature(INPUTS, inputs) + _feature(TARGETS, targets)
    return _FIELD_1 + _sized(features)


def _feature(name: str, ids: Sequence[int]) -> bytes:
    values = _FIELD_1 + _sized(b"".join(map(_varint, ids)))
    feature = _FIELD_3 + _sized(values)
    entry = _FIELD_1 + _sized(name.encode()) + _FIELD_2 + _sized(feature)
    return _FIELD_1 + _sized(entry)


def _sized(content: bytes) -> bytes:
    return _varint(len(content)) + content


@cache
def _varint(value: int) -> bytes:
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def framed(contents: Sequence[bytes]) -> list[bytes]:
    """Gives the TFRecord form of each record."""
    lengths = [_LENGTH.pack(len(content)) for content in contents]
    length_checksums = _masked_checksums(lengths)
    checksums = _masked_checksums(contents)
    return [
        b"".join(parts)
        for parts in zip(lengths, length_checksums, contents, checksums, strict=True)
    ]


def _masked_checksums(contents: Sequence[bytes]) -> list[bytes]:
    """Gives the masked CRC-32C of each content, four bytes, little-endian.

    The contents are worked on side by side, longest first, one byte of each at a time.
    """
    order = sorted(range(len(contents)), key=lambda index: -len(contents[index]))
    lengths = np.array([len(contents[index]) for index in order])
    columns = np.zeros((lengths[0], len(order)), np.uint8)
    for place, index in enumerate(order):
        columns[: lengths[place], place] = np.frombuffer(contents[index], np.uint8)
    table = _checksum_table()
    crc = np.full(len(order), _ALL_ONES, np.uint32)
    for number, column in enumerate(columns):
        # Contents that have ended stand at the back.
        active = int(np.searchsorted(-lengths, -number))
        part = crc[:active]
        crc[:active] = table[(part ^ column[:active]) & 0xFF] ^ (part >> np.uint32(8))
    crc ^= np.uint32(_ALL_ONES)
    rotated = (crc >> np.uint32(15)) | (crc << np.uint32(17))
    masked = (rotated + np.uint32(_MASK_DELTA)).astype("<u4")
    result = np.empty_like(masked)
    result[order] = masked
    return [value.tobytes() for value in result]


@cache
def _checksum_table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        odd = table & np.uint32(1)
        table = (table >> np.uint32(1)) ^ (odd * np.uint32(_CASTAGNOLI))
    return table


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
        self._files = [path.open("wb") for path in paths]
        self._count = 0

    def write(self, records: Sequence[bytes]) -> None:
        """Appends records, each to the file whose turn it is."""
        if not records:
            return
        for frame in framed(records):
            self._files[self._count % len(self._files)].write(frame)
            self._count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for file in self._files:
            file.close()
        if error is None and self._seed is not None:
            for index, path in enumerate(self._paths):
                _shuffle(path, random.Random(f"{self._seed}/{index}"))


def _shuffle(path: Path, generator: random.Random) -> None:
    content = path.read_bytes()
    spans = _record_spans(content)
    generator.shuffle(spans)
    path.write_bytes(b"".join(content[start:end] for start, end in spans))


def _record_spans(content: bytes) -> list[tuple[int, int]]:
    spans = []
    start = 0
    while start < len(content):
        (length,) = _LENGTH.unpack_from(content, start)
        end = start + _LENGTH.size + length + 2 * _CHECKSUM_BYTES
        spans.append((start, end))
        start = end
    return spans
