"""Drop the events of steps that a resumed run repeats, so that none occurs twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2

from t2t_repro.data.records import (
    FOOTER_BYTES,
    HEADER_BYTES,
    DamagedRecordError,
    record_length,
)
from t2t_repro.files import INCOMPLETE
from t2t_repro.training.metrics_file import all_event_files


def remove_incomplete(output_dir: Path) -> None:
    """Remove the files that a process left when it was killed while it rewrote one."""
    for path in all_event_files(output_dir):
        if path.name.endswith(INCOMPLETE):
            path.unlink(missing_ok=True)


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
    start = 0
    while start + HEADER_BYTES <= len(content):
        data = start + HEADER_BYTES
        try:
            length = record_length(content[start:data])
            end = data + length + FOOTER_BYTES
            if end > len(content):
                return
            event = event_pb2.Event.FromString(content[data : data + length])
        except (DecodeError, DamagedRecordError):
            return  # TensorBoard reads no further than a damaged record, either.
        if event.step <= step:
            yield content[start:end]
        start = end
