"""Find damage in event files, which TensorBoard passes over in silence.

TensorBoard stops reading a file at a wrong checksum and shows the steps before it.

This module imports no TensorFlow: TensorBoard loads it when it starts.
"""

from __future__ import annotations

import dataclasses
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


@dataclasses.dataclass(frozen=True)
class Damage:
    """A place in an event file after which events may be missing.

    Attributes:
        file: Name of the file.
        last_step: Step of the last event before the damage, or None.
    """

    file: str
    last_step: int | None

    def sentence(self, run: str) -> str:
        """Return a sentence for a user."""
        if self.last_step is None:
            place = "at its beginning, so its steps"
        else:
            place = f"after step {self.last_step}, so later steps"
        return (
            f'An event file of the run "{run}" is damaged {place} may be missing here '
            f"({self.file})."
        )


def find_damage(folder: Path, shown: Collection[int]) -> Damage | None:
    """Return the last damage in the event files of a folder, or None.

    Args:
        folder: Folder of a run.
        shown: Steps that TensorBoard has read. The checksums of their data are not
            computed again, because that is slow.
    """
    for path in sorted(folder.glob("*tfevents*"), reverse=True):
        try:
            found = _damage_of(path, shown)
        except OSError:  # TensorBoard has read it; it may have been removed since
            continue
        if found is not None:
            return found
    return None


def _damage_of(path: Path, shown: Collection[int]) -> Damage | None:
    last_step = None
    with path.open("rb") as file:
        try:
            while (step := _next_step(file, shown)) is not None:
                last_step = step
        except DamagedRecordError:
            return Damage(path.name, last_step)
        except EOFError:
            is_old = time.time() - path.stat().st_mtime > _SECONDS_OF_WRITING
            return Damage(path.name, last_step) if is_old else None
    return None


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
