"""Write the training split: first in pieces, which survive a kill, then in shards."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from t2t_repro.data.encoding import PairEncoder, TextBatch
from t2t_repro.data.filters import PairFilter
from t2t_repro.data.manifest import SplitCounts
from t2t_repro.data.pieces import write_piece, write_shard
from t2t_repro.data.running_counts import RunningCounts
from t2t_repro.data.text_files import identity
from t2t_repro.data.work_folder import WorkFolder
from t2t_repro.data.worker_pool import Execution, ordered_map
from t2t_repro.progress import Progress

logger = logging.getLogger(__name__)

# A killed process loses the work on one piece at most, about 40 MB.
_BATCHES_PER_PIECE = 100


class TrainingSplit:
    """The training split while it is written.

    Args:
        work: Folder of the finished parts.
        key: Digest of everything that the examples depend on, except the text. Digests
            of the text are in the journal.
        pair_filter: Filter of the pairs.
        shard_count: Number of shards.
        seed: Seed of the order of the pairs.

    Attributes:
        shard_count: Number of shards.
        counts: Counts of the pairs so far.
    """

    def __init__(
        self,
        work: WorkFolder,
        key: str,
        pair_filter: PairFilter,
        shard_count: int,
        seed: int,
    ) -> None:
        self._work = work
        self._key = key
        self._filter = pair_filter
        self.shard_count = shard_count
        self._seed = seed
        self._pieces: list[dict[str, Any]] = []
        self.counts = RunningCounts()

    def encode(
        self,
        batches: Iterable[TextBatch],
        encoder: PairEncoder,
        execution: Execution,
        progress: Progress,
    ) -> None:
        """Encode all pairs into pieces, except those of an earlier process.

        Args:
            batches: The text; the same batches in the same order every time.
            encoder: Encodes a batch.
            execution: Number of worker processes.
            progress: Counts the pairs.

        Raises:
            OSError: If a file cannot be written.
            UserError: If a worker process ends.
        """
        remaining = self._resume(iter(batches), progress)
        # Copies take memory as pairs do. Where pieces end does not change the shards.
        length = max(1, _BATCHES_PER_PIECE // encoder.copies)
        encoded = ordered_map(encoder, remaining, execution)
        while True:
            first = self.counts.written
            records, digests = [], []
            for batch in itertools.islice(encoded, length):
                records += self.counts.add(batch, self._filter.kept(batch))
                digests.append(batch.text_digest)
                progress.advance(len(batch.digests))
            if not digests:
                return
            self._add_piece(records, digests, first)

    def split_counts(self, shards: list[str]) -> SplitCounts:
        """Return the counts of the split that is encoded.

        Args:
            shards: Names of the shards.

        Raises:
            UserError: If no pair is left.
        """
        return self.counts.split_counts("train", self._filter, shards)

    def write_shards(self, paths: Sequence[Path], progress: Progress) -> None:
        """Write the shards, except those that an earlier process finished.

        Args:
            paths: Their files.
            progress: Counts the shards.

        Raises:
            OSError: If a file cannot be written.
        """
        names = [f"shard-{number:05d}" for number in range(len(paths))]
        finished = {
            entry["shard"]: entry["file"]
            for entry in self._work.entries(self._key)
            if "shard" in entry and entry["pieces"] == len(self._pieces)
        }
        for number, name in enumerate(names):
            if number in finished and self._work.has(name, finished[number]):
                progress.skip()
                continue
            self._write_shard(number, self._work.path(name))
            progress.advance()
        for name, path in zip(names, paths, strict=True):
            os.replace(self._work.path(name), path)

    def _write_shard(self, number: int, path: Path) -> None:
        segments = [
            (
                self._work.path(piece["name"]),
                piece["starts"][number],
                piece["starts"][number + 1],
            )
            for piece in self._pieces
        ]
        write_shard(path, segments, f"{self._seed}/{number}")
        entry = {"shard": number, "pieces": len(self._pieces), "file": identity(path)}
        self._work.append(entry)

    def _add_piece(self, records: list[bytes], digests: list[str], first: int) -> None:
        name = f"piece-{len(self._pieces):05d}"
        path = self._work.path(name)
        starts = write_piece(path, records, first, self.shard_count)
        entry = {
            "name": name,
            "file": identity(path),
            "starts": starts,
            "text": digests,
            "counts": self.counts.to_json(),
            "dropped": dict(self._filter.dropped),
            "also_held_out": self._filter.also_held_out,
        }
        self._pieces.append(entry)
        self._work.append(entry)

    def _resume(
        self, batches: Iterator[TextBatch], progress: Progress
    ) -> Iterator[TextBatch]:
        """Keep the pieces of an earlier process, and return the batches after them."""
        entries = self._work.entries(self._key)
        pieces = [entry for entry in entries if "name" in entry]
        for piece in pieces:
            taken = [*itertools.islice(batches, len(piece["text"]))]
            digests = [batch.digests() for batch in taken]
            same_text = piece["text"] == [
                batch.text_digest(own)
                for own, batch in zip(digests, taken, strict=True)
            ]
            if not same_text or not self._work.has(piece["name"], piece["file"]):
                self._work.replace_entries(self._key, self._pieces)
                batches = itertools.chain(taken, batches)
                break
            for own in digests:
                self._filter.remember(own)
            self._pieces.append(piece)
            progress.skip(sum(map(len, digests)))
        if self._pieces:
            self._restore(self._pieces[-1])
            logger.info("resuming after %d training pairs", self.counts.read)
        return batches

    def _restore(self, piece: dict[str, Any]) -> None:
        self.counts = RunningCounts.from_json(piece["counts"])
        self._filter.dropped = Counter(piece["dropped"])
        self._filter.also_held_out = piece["also_held_out"]


def training_key(**facts: object) -> str:
    """Return a digest of everything that the examples depend on, except the text.

    Args:
        **facts: Values that JSON can hold.
    """
    text = json.dumps({"batches": _BATCHES_PER_PIECE, **facts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
