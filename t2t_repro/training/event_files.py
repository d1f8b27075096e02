"""Drop the events of steps that a resumed run repeats, so that none occurs twice."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2

# A record: its length (uint64, little-endian), the length's checksum, the content, the
# content's checksum (TensorFlow's core/lib/io/record_writer.cc).
_LENGTH = struct.Struct("<Q")
_CHECKSUM_BYTES = 4


def event_files(output_dir: Path) -> list[Path]:
    """Return the event files of all splits of a run, such as those in `train/`."""
    return sorted(output_dir.glob("*/events.out.tfevents.*"))


def without_later_events(path: Path, step: int) -> bytes | None:
    """Return the content of an event file without later events, or None if it has none.

    The end of a record that a killed process left incomplete is dropped as well.

    Args:
        path: Path of the file.
        step: Events with a larger step are dropped.
    """
    content = path.read_bytes()
    kept = b"".join(_records_until(content, step))
    return None if len(kept) == len(content) else kept


def _records_until(content: bytes, step: int) -> Iterator[bytes]:
    """Yield the complete records of events up to a step, with their checksums."""
    start, header = 0, _LENGTH.size + _CHECKSUM_BYTES
    while start + header <= len(content):
        (length,) = _LENGTH.unpack_from(content, start)
        end = start + header + length + _CHECKSUM_BYTES
        if end > len(content):
            return
        try:
            event = event_pb2.Event.FromString(
                content[start + header : end - _CHECKSUM_BYTES]
            )
        except DecodeError:
            return  # TensorBoard reads no further than a damaged record, either.
        if event.step <= step:
            yield content[start:end]
        start = end
