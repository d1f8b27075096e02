"""TFRecord files, tensor2tensor's format of shards.

Source: tensor2tensor `data_generators/generator_utils.py` (`generate_files`).
"""

from __future__ import annotations

import array
import contextlib
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import tensorflow as tf

# A record: its length (uint64, little-endian), the length's checksum, the content, the
# content's checksum (TensorFlow's core/lib/io/record_writer.cc).
_LENGTH = struct.Struct("<Q")
_CHECKSUM_BYTES = 4
RECORD_OVERHEAD = _LENGTH.size + 2 * _CHECKSUM_BYTES


def write_records(path: Path, records: Iterable[bytes]) -> None:
    """Write a TFRecord file, without starting TensorFlow's runtime.

    `tf.data` would start it, and then the CPU could no longer be split into replicas.

    Args:
        path: File to write.
        records: Its records; an error of the iteration is passed on.

    Raises:
        OSError: If the file cannot be written.
    """
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


def record_ends(content: bytes) -> array.array[int]:
    """Return where each record of a TFRecord file ends, in bytes.

    Args:
        content: Content of the file.
    """
    ends, end = array.array("Q"), 0
    while end < len(content):
        (length,) = _LENGTH.unpack_from(content, end)
        end += length + RECORD_OVERHEAD
        ends.append(end)
    return ends


@contextlib.contextmanager
def _system_errors() -> Iterator[None]:
    """Raise TensorFlow's errors as `OSError`, as Python's own files do."""
    try:
        yield
    except tf.errors.OpError as error:
        # TensorFlow's message is "<path>; <reason of the system>".
        raise OSError(error.message.rpartition("; ")[2]) from error
