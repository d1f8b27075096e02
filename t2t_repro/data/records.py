"""TFRecord files, tensor2tensor's format of shards.

Source: tensor2tensor `data_generators/generator_utils.py` (`generate_files`).
"""

from __future__ import annotations

import array
import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import tensorflow as tf

from t2t_repro.data.record_framing import (
    HEADER_BYTES,
    RECORD_OVERHEAD,
    record_length,
)


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
    try:
        yield
    except tf.errors.OpError as error:
        # TensorFlow's message is "<path>; <reason of the system>".
        raise OSError(error.message.rpartition("; ")[2]) from error
