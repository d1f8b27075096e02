"""TFRecord files of `tf.train.Example`, tensor2tensor's format of shards.

A record is its length (uint64, little-endian), a checksum of the length, the data, and
a checksum of the data (TensorFlow's `core/lib/io/record_writer.h`). Event files have
the same framing. The source of the format of shards is tensor2tensor's
`data_generators/generator_utils.py` (`generate_files`).

TensorFlow (3 s, 500 MB) is imported only to write a file, because worker processes and
TensorBoard import this module. The messages of examples are therefore declared here, as
in TensorFlow's `core/example/example.proto` and `feature.proto`, without the kinds of
features that shards do not have.
"""

from __future__ import annotations

import array
import contextlib
import functools
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from t2t_repro.constants import INPUTS, TARGETS

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _LENGTH.size + _CHECKSUM.size
FOOTER_BYTES = _CHECKSUM.size
RECORD_OVERHEAD = HEADER_BYTES + FOOTER_BYTES


_Field = descriptor_pb2.FieldDescriptorProto


def write_records(path: Path, records: Iterable[bytes]) -> None:
    """Write a TFRecord file, without starting TensorFlow's runtime.

    `tf.data` would start it, and then the CPU could no longer be split into replicas.

    Args:
        path: File to write.
        records: Its records; an error of the iteration is passed on.

    Raises:
        OSError: If the file cannot be written.
    """
    import tensorflow as tf

    with _system_errors():
        file = tf.io.TFRecordWriter(str(path))
    try:
        for record in records:
            with _system_errors():
                file.write(record)
    except BaseException:
        # On a full disk, closing fails as writing did.
        with contextlib.suppress(tf.errors.OpError):
            file.close()
        raise
    with _system_errors():
        file.close()


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


@contextlib.contextmanager
def _system_errors() -> Iterator[None]:
    """Raise TensorFlow's errors as `OSError`, as Python's own files do."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        # TensorFlow's message is "<path>; <reason of the system>".
        raise OSError(error.message.rpartition("; ")[2]) from error


class DamagedRecordError(ValueError):
    """A record has a wrong checksum."""


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
    """Compute the checksum of the data of a record, which is slow (6 MB per second).

    Args:
        data: The data.
        footer: The last `FOOTER_BYTES` of the record.

    Raises:
        DamagedRecordError: If the data have a wrong checksum.
    """
    if _CHECKSUM.pack(_checksum(data)) != footer:
        raise DamagedRecordError("a record has a wrong checksum")


# Most records of a file have one of a few hundred lengths.
@functools.lru_cache(maxsize=4096)
def _checksum_of_length(length: bytes) -> int:
    return _checksum(length)


def _checksum(data: bytes) -> int:
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    return masked_crc32c(data)


def example_bytes(inputs: Sequence[int], targets: Sequence[int]) -> bytes:
    """Return the serialized `tf.train.Example` of a pair of id sequences."""
    example = _Example()
    for name, ids in ((INPUTS, inputs), (TARGETS, targets)):
        example.features.feature[name].int64_list.value.extend(ids)
    return example.SerializeToString(deterministic=True)


def _example_class() -> type:
    file = descriptor_pb2.FileDescriptorProto(
        name="t2t_repro/example.proto", package="t2t_repro", syntax="proto3"
    )
    ids = file.message_type.add(name="Int64List")
    ids.field.add(
        name="value", number=1, type=_Field.TYPE_INT64, label=_Field.LABEL_REPEATED
    )
    feature = file.message_type.add(name="Feature")
    _add_message_field(feature, "int64_list", 3, "Int64List")
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(
        name="key", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL
    )
    _add_message_field(entry, "value", 2, "Feature")
    _add_message_field(features, "feature", 1, "Features.FeatureEntry", repeated=True)
    example = file.message_type.add(name="Example")
    _add_message_field(example, "features", 1, "Features")
    # A pool of its own: TensorFlow registers its messages in the default one.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("t2t_repro.Example")
    return message_factory.GetMessageClass(found)


def _add_message_field(
    message: descriptor_pb2.DescriptorProto,
    name: str,
    number: int,
    kind: str,
    *,
    repeated: bool = False,
) -> None:
    message.field.add(
        name=name,
        number=number,
        type=_Field.TYPE_MESSAGE,
        type_name=f".t2t_repro.{kind}",
        label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL,
    )


_Example = _example_class()
