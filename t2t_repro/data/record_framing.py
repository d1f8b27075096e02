"""The framing of records in TFRecord files and event files.

A record is its length (uint64, little-endian), a checksum of the length, the data, and
a checksum of the data (TensorFlow's core/lib/io/record_writer.h).

This module imports no TensorFlow: TensorBoard loads it when it starts.
"""

from __future__ import annotations

import functools
import struct

from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _LENGTH.size + _CHECKSUM.size
FOOTER_BYTES = _CHECKSUM.size
RECORD_OVERHEAD = HEADER_BYTES + FOOTER_BYTES


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
    if _CHECKSUM.pack(masked_crc32c(data)) != footer:
        raise DamagedRecordError("a record has a wrong checksum")


# Most records of a file have one of a few hundred lengths.
@functools.lru_cache(maxsize=4096)
def _checksum_of_length(length: bytes) -> int:
    return masked_crc32c(length)
