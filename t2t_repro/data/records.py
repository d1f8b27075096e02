"""TFRecord files of `tf.train.Example`, tensor2tensor's format of shards.

A record is its length (uint64, little-endian), a checksum of the length, the data, and
a checksum of the data (TensorFlow's `core/lib/io/record_writer.h`). Event files have
the same framing. The format of the shards is that of tensor2tensor's
`data_generators/generator_utils.py` (`generate_files`).

TensorFlow (3 s, 500 MB) is imported only to write a file, because worker processes and
TensorBoard import this module.
"""

from __future__ import annotations

import array
import contextlib
import functools
import random
import struct
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
)
from google.protobuf.message import DecodeError

from t2t_repro.constants import INPUTS, TARGETS

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _LENGTH.size + _CHECKSUM.size
FOOTER_BYTES = _CHECKSUM.size
RECORD_OVERHEAD = HEADER_BYTES + FOOTER_BYTES


class DamagedRecordError(ValueError):
    """Error raised when a record has a wrong checksum."""


@contextlib.contextmanager
def record_writer(path: Path) -> Generator[Callable[[bytes], None]]:
    """Open a TFRecord file, and yield the function that writes a record.

    Unlike `tf.data`, it does not start TensorFlow's runtime, after which the CPU can no
    longer be split into replicas.

    Args:
        path: File to write.

    Raises:
        OSError: If the file cannot be written. Errors of the block are passed on.
    """
    import tensorflow as tf

    @contextlib.contextmanager
    def system_errors() -> Generator[None]:
        try:
            yield
        except tf.errors.OpError as error:
            # TensorFlow's message is "<path>; <reason of the system>".
            raise OSError(error.message.rpartition("; ")[2]) from error

    with system_errors():
        file = tf.io.TFRecordWriter(str(path))
    try:
        yield system_errors()(file.write)
    except BaseException:
        # On a full disk, closing fails as writing did.
        with contextlib.suppress(tf.errors.OpError):
            file.close()
        raise
    with system_errors():
        file.close()


def shuffle_records(path: Path, seed: str) -> None:
    """Rewrite a TFRecord file in random order, with one copy of it in memory.

    Args:
        path: The file.
        seed: Seed of the order.

    Raises:
        OSError: If the file cannot be read or written.
    """
    content = path.read_bytes()
    ends = record_ends(content)
    order = array.array("L", range(len(ends)))
    random.Random(seed).shuffle(order)
    view = memoryview(content)
    with path.open("wb") as file:
        file.writelines(view[ends[n - 1] if n else 0 : ends[n]] for n in order)


def records_of(path: Path) -> Iterator[bytes]:
    """Yield the data of the records of a TFRecord file, with one copy of it in memory.

    The checksums of the lengths are checked, those of the data are not.

    Args:
        path: The file.

    Raises:
        OSError: If the file cannot be read.
        EOFError: If the last record is cut short.
        DamagedRecordError: If a length has a wrong checksum.
    """
    content, start = path.read_bytes(), 0
    for end in record_ends(content):
        yield content[start + HEADER_BYTES : end - FOOTER_BYTES]
        start = end


def record_ends(content: bytes | bytearray) -> array.array[int]:
    """Return where each record of a TFRecord file ends, in bytes.

    The checksums of the lengths are checked, those of the data are not.

    Args:
        content: Content of the file.

    Raises:
        EOFError: If the last record is cut short.
        DamagedRecordError: If a length has a wrong checksum.
    """
    ends, end = array.array("Q"), 0
    while end < len(content):
        end += record_length(content[end : end + HEADER_BYTES]) + RECORD_OVERHEAD
        ends.append(end)
    if end > len(content):
        raise EOFError("the last record is cut short")
    return ends


def record_length(header: bytes | bytearray) -> int:
    """Return the length of the data of a record, in bytes.

    Args:
        header: The first `HEADER_BYTES` of the record.

    Raises:
        EOFError: If the header is cut short.
        DamagedRecordError: If the length has a wrong checksum.
    """
    if len(header) < HEADER_BYTES:
        raise EOFError("a record is cut short")
    length = bytes(header[: _LENGTH.size])
    if _checksum_of_length(length) != _CHECKSUM.unpack_from(header, _LENGTH.size)[0]:
        raise DamagedRecordError("the length of a record has a wrong checksum")
    return _LENGTH.unpack(length)[0]


def check_data(data: bytes, footer: bytes) -> None:
    """Check the checksum of a record's data, which is slow (6 MB per second).

    Args:
        data: The data.
        footer: The last `FOOTER_BYTES` of the record.

    Raises:
        DamagedRecordError: If the data have a wrong checksum.
    """
    if _CHECKSUM.pack(_checksum(data)) != footer:
        raise DamagedRecordError("a record has a wrong checksum")


def _checksum(data: bytes) -> int:
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    return masked_crc32c(data)


# Most records of a file have one of a few hundred lengths.
_checksum_of_length = functools.lru_cache(maxsize=4096)(_checksum)


# TensorFlow's `core/example/example.proto` and `feature.proto`, with the features that
# shards have. A map is a list of entries on the wire.
_MESSAGES = """
name: "t2t_repro/example.proto" package: "t2t_repro" syntax: "proto3"
message_type { name: "Ids" field {
  name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 } }
message_type { name: "Feature" field {
  name: "ids" number: 3 label: LABEL_OPTIONAL type_name: ".t2t_repro.Ids" } }
message_type { name: "Entry" field {
  name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } field {
  name: "feature" number: 2 label: LABEL_OPTIONAL type_name: ".t2t_repro.Feature" } }
message_type { name: "Features" field {
  name: "entry" number: 1 label: LABEL_REPEATED type_name: ".t2t_repro.Entry" } }
message_type { name: "Example" field {
  name: "features" number: 1 label: LABEL_OPTIONAL type_name: ".t2t_repro.Features" } }
"""


def example_bytes(inputs: Sequence[int], targets: Sequence[int]) -> bytes:
    """Return the serialized `tf.train.Example` of a pair of id sequences."""
    example = _example_class()()
    for name, ids in ((INPUTS, inputs), (TARGETS, targets)):
        example.features.entry.add(key=name).feature.ids.value.extend(ids)
    return example.SerializeToString()


def example_ids(data: bytes) -> dict[str, Sequence[int]]:
    """Return the ids of a serialized `tf.train.Example` by the names of its features.

    Args:
        data: The data of a record.

    Raises:
        DamagedRecordError: If the data is something else.
    """
    try:
        example = _example_class().FromString(data)
    except DecodeError as error:
        raise DamagedRecordError("a record that is no tf.train.Example") from error
    return {entry.key: entry.feature.ids.value for entry in example.features.entry}


@functools.cache
def _example_class() -> Any:
    file = text_format.Parse(_MESSAGES, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("t2t_repro.Example")
    return message_factory.GetMessageClass(found)
