"""Encoded training pairs in pieces, and the shards that are made of them.

A piece has the examples of consecutive pairs, grouped by shard. A preparation can stop
after any piece. A shard consists of one segment of each piece, shuffled together.
"""

from __future__ import annotations

import array
import random
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.data.record_framing import RECORD_OVERHEAD, DamagedRecordError
from t2t_repro.data.records import record_ends, write_records


def write_piece(
    path: Path, records: Sequence[bytes], first: int, shard_count: int
) -> list[int]:
    """Write records grouped by shard.

    Args:
        path: File to write.
        records: Records in the order of the text. Consecutive records belong to
            consecutive shards; the first shard follows the last one.
        first: Number of records in the earlier pieces.
        shard_count: Number of shards.

    Returns:
        The byte where the segment of each shard starts, and the size of the file.

    Raises:
        OSError: If the file cannot be written.
    """
    starts, grouped = [0], []
    for shard in range(shard_count):
        own = records[(shard - first) % shard_count :: shard_count]
        grouped += own
        size = sum(map(len, own)) + RECORD_OVERHEAD * len(own)
        starts.append(starts[-1] + size)
    path.unlink(missing_ok=True)  # it may be a link to another file
    write_records(path, grouped)
    return starts


def write_shard(
    path: Path, segments: Sequence[tuple[Path, int, int]], seed: str
) -> None:
    """Write the records of all segments in random order.

    One shard is in memory at a time.

    Args:
        path: File to write.
        segments: For each piece its path, and the start and end of the segment.
        seed: Seed of the order.

    Raises:
        OSError: If a file cannot be read or written.
    """
    content = _joined(segments)
    try:
        ends = record_ends(content)
    except (EOFError, DamagedRecordError) as error:
        raise OSError(f"a piece was changed by another process: {error}") from error
    order = array.array("L", range(len(ends)))
    random.Random(seed).shuffle(order)
    view = memoryview(content)
    path.unlink(missing_ok=True)  # it may be a link to another file
    with path.open("xb") as file:
        file.writelines(view[ends[n - 1] if n else 0 : ends[n]] for n in order)


def _joined(segments: Sequence[tuple[Path, int, int]]) -> bytearray:
    """Read all segments into one array, so that they are in memory once."""
    content = bytearray(sum(end - start for _, start, end in segments))
    view, place = memoryview(content), 0
    for path, start, end in segments:
        part = view[place : place + end - start]
        with path.open("rb") as file:
            file.seek(start)
            if file.readinto(part) < len(part):
                raise OSError(f"{path} was cut short by another process")
        place += len(part)
    return content
