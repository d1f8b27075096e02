"""Find damage in event files, which TensorBoard passes over in silence.

TensorBoard stops reading a file at a wrong checksum and shows the steps before it.

This module imports no TensorFlow: TensorBoard loads it when it starts.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2

from t2t_repro.data.records import (
    FOOTER_BYTES,
    HEADER_BYTES,
    DamagedRecordError,
    check_data,
    record_length,
)

# A record that ends early may just be in writing, until the file is this old.
_SECONDS_OF_WRITING = 10.0


def find_damage(folder: Path, run: str, shown: Collection[int]) -> str | None:
    """Return a sentence about the last damage in the event files of a run, or None.

    Args:
        folder: Folder of the run.
        run: Name of the run.
        shown: Steps that TensorBoard has read. The checksums of their data are not
            computed again, because that is slow.
    """
    for path in sorted(folder.glob("*tfevents*"), reverse=True):
        try:
            place = _damage_in(path, shown)
        except OSError:  # TensorBoard has read it; it may have been removed since
            continue
        if place:
            return (
                f'An event file of the run "{run}" is damaged {place} may be missing '
                f"here ({path.name})."
            )
    return None


def _damage_in(path: Path, shown: Collection[int]) -> str:
    """Return what is damaged in a file, such as "after step 2, so later steps"."""
    last_step = None
    with path.open("rb") as file:
        try:
            while (step := _next_step(file, shown)) is not None:
                last_step = step
            return ""
        except DamagedRecordError:
            pass
        except EOFError:
            if time.time() - path.stat().st_mtime <= _SECONDS_OF_WRITING:
                return ""
    if last_step is None:
        return "at its beginning, so its steps"
    return f"after step {last_step}, so later steps"


def _next_step(file: BinaryIO, shown: Collection[int]) -> int | None:
    """Return the step of the next event, or None at the end of the file.

    Raises:
        EOFError: If the file ends within the event.
        DamagedRecordError: If a checksum is wrong, or the data are not an event.
    """
    header = file.read(HEADER_BYTES)
    if not header:
        return None
    length = record_length(header)
    record = file.read(length + FOOTER_BYTES)
    if len(record) < length + FOOTER_BYTES:
        raise EOFError
    data, footer = record[:length], record[length:]
    try:
        step = event_pb2.Event.FromString(data).step
    except DecodeError as error:
        raise DamagedRecordError("a record is not an event") from error
    if step not in shown:
        check_data(data, footer)
    return step
