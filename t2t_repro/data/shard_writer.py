"""Write the shards and the raw text of every split of a problem."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import hashlib
import itertools
import json
import logging
import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from t2t_repro import __version__
from t2t_repro.data.encoding import (
    EncodedBatch,
    PairEncoder,
    SubwordSampling,
    TextBatch,
)
from t2t_repro.data.filters import PairFilter
from t2t_repro.data.manifest import SplitCounts, raw_text_names
from t2t_repro.data.output_files import OutputFiles
from t2t_repro.data.pairs import Pair, checked_pairs
from t2t_repro.data.prepared import Sources
from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.reading_progress import progress_of
from t2t_repro.data.records import (
    RECORD_OVERHEAD,
    DamagedRecordError,
    record_ends,
    write_records,
)
from t2t_repro.data.repeated_pair import copies_of
from t2t_repro.data.text_files import identity
from t2t_repro.data.work_folder import WorkFolder
from t2t_repro.data.worker_pool import Execution, ordered_map
from t2t_repro.errors import UserError
from t2t_repro.progress import Progress
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer

logger = logging.getLogger(__name__)


_PAIRS_AT_A_TIME = 2_000


def write_splits(
    problem: Problem,
    tmp_dir: str | Path | None,
    settings: PrepareSettings,
    sources: Sources,
    tokenizers: tuple[Tokenizer, Tokenizer],
    outputs: OutputFiles,
    work: WorkFolder,
    execution: Execution,
) -> dict[str, SplitCounts]:
    """Write all splits of a problem.

    Args:
        problem: The problem.
        tmp_dir: Folder for downloads, or None for the source's default.
        settings: Settings of the filters and shards.
        sources: Identities of the text.
        tokenizers: Tokenizers of the inputs and of the targets.
        outputs: Collects the files.
        work: Folder of finished parts of the training split.
        execution: Number of worker processes, and whether to draw progress bars.

    Returns:
        The counts of each split, in the order train, dev, test.

    Raises:
        UserError: If the text cannot be used, or no pair of a split is left.
    """
    held_out: set[int] = set()
    counts = {}
    # Training comes last, because its pairs are looked up in the other splits.
    for split in sorted(problem.splits, key=SPLITS.index, reverse=True):
        if split != "train":
            counts[split] = _write_evaluation_split(
                problem,
                split,
                tmp_dir,
                settings,
                PairEncoder(tokenizers),
                outputs,
                held_out,
            )
            continue
        training = TrainingSplit(
            work,
            _key(problem, settings, sources, tokenizers, held_out),
            PairFilter(settings, is_training=True, held_out=held_out),
            settings.num_shards,
            settings.shuffle_seed,
        )
        # Only training text is sampled: scores compare the usual subwords.
        encoder = PairEncoder(tokenizers, SubwordSampling.of(settings))
        counts[split] = _write_training_split(
            problem, tmp_dir, training, encoder, outputs, execution
        )
    return {split: counts[split] for split in SPLITS if split in counts}


def _key(
    problem: Problem,
    settings: PrepareSettings,
    sources: Sources,
    tokenizers: tuple[Tokenizer, Tokenizer],
    held_out: set[int],
) -> str:
    models = [hashlib.sha256(t.to_bytes()).hexdigest() for t in tokenizers]
    return training_key(
        version=__version__,
        problem=problem.name,
        problem_version=problem.version,
        settings=settings.recorded(),
        sources=sources,
        tokenizers=models,
        held_out=hashlib.sha256(repr(sorted(held_out)).encode()).hexdigest(),
        pairs_at_a_time=_PAIRS_AT_A_TIME,
    )


def _write_training_split(
    problem: Problem,
    tmp_dir: str | Path | None,
    training: TrainingSplit,
    encoder: PairEncoder,
    outputs: OutputFiles,
    execution: Execution,
) -> SplitCounts:
    logger.info("encoding the training pairs")
    pairs = checked_pairs(problem, "train", tmp_dir)
    batches = _batches(problem, pairs, is_training=True)
    total = problem.num_pairs("train", tmp_dir)
    show = execution.show_progress
    with progress_of(total, "pair", show_progress=show) as progress:
        training.encode(batches, encoder, execution, progress)
    names = _shard_names(outputs.prefix, "train", training.shard_count)
    counts = training.split_counts(names)
    logger.info("shuffling %d shards", len(names))
    with progress_of(len(names), "shard", show_progress=show) as progress:
        training.write_shards([outputs.path(name) for name in names], progress)
    return counts


def _write_evaluation_split(
    problem: Problem,
    split: str,
    tmp_dir: str | Path | None,
    settings: PrepareSettings,
    encoder: PairEncoder,
    outputs: OutputFiles,
    held_out: set[int],
) -> SplitCounts:
    """Write a split that is not trained on, and add its digests to `held_out`."""
    pair_filter = PairFilter(settings, is_training=False)
    counts = RunningCounts()
    (shard,) = _shard_names(outputs.prefix, split, 1)
    path = outputs.path(shard)
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(outputs.path(name).open("wb"))
            for name in raw_text_names(outputs.prefix, split)
        ]

        def records() -> Iterator[bytes]:
            pairs = checked_pairs(problem, split, tmp_dir)
            for batch in _batches(problem, pairs, is_training=False):
                for file, texts in zip(
                    files, (batch.sources, batch.targets), strict=True
                ):
                    _write_lines(file, texts)
                encoded = encoder(batch)
                held_out.update(encoded.digests.tolist())
                yield from counts.add(encoded, pair_filter.kept(encoded))

        write_records(path, records())
    return counts.split_counts(split, pair_filter, [shard])


def _shard_names(prefix: str, split: str, count: int) -> list[str]:
    return [f"{prefix}-{split}-{index:05d}-of-{count:05d}" for index in range(count)]


def _batches(
    problem: Problem, pairs: Iterable[Pair], *, is_training: bool
) -> Iterator[TextBatch]:
    iterator = iter(pairs)
    for number in itertools.count():
        batch = list(itertools.islice(iterator, _PAIRS_AT_A_TIME))
        if not batch:
            return
        sources, targets = zip(*batch, strict=True)
        yield TextBatch(
            sources=sources,
            targets=targets,
            # In this process: a worker process might not find the user's problem.
            written=[problem.encode_target(target) for target in targets],
            copies=[copies_of(pair) if is_training else 1 for pair in batch],
            number=number,
        )


def _write_lines(file: BinaryIO, texts: Iterable[str]) -> None:
    for text in texts:
        # A NUL would make the file look damaged; SentencePiece cannot read one either.
        line = text.replace("\n", " ").replace("\0", " ")
        file.write(line.encode("utf-8", "replace") + b"\n")


@dataclasses.dataclass
class RunningCounts:
    """Counts of the pairs of a split that were read and written.

    Attributes:
        read: Number of pairs that were read.
        source_subwords: Number of ids of the inputs that were written.
        target_subwords: Number of ids of the targets that were written.
        lengths: Number of pairs that were written, copies included, by the length of
            the longer side.
    """

    read: int = 0
    source_subwords: int = 0
    target_subwords: int = 0
    lengths: Counter[int] = dataclasses.field(default_factory=Counter)

    @property
    def written(self) -> int:
        """Number of pairs that were written, copies included."""
        return self.lengths.total()

    def add(self, batch: EncodedBatch, kept: np.ndarray) -> list[bytes]:
        """Count the pairs of a batch, and return the records to write.

        Args:
            batch: The pairs.
            kept: Return value of `PairFilter.kept`.
        """
        self.read += len(kept)
        examples, written = batch.examples, np.repeat(kept, batch.copies)
        sources = examples.source_lengths[written]
        targets = examples.target_lengths[written]
        self.source_subwords += int(sources.sum())
        self.target_subwords += int(targets.sum())
        self.lengths.update(np.maximum(sources, targets).tolist())
        return [*itertools.compress(examples.records, written)]

    def to_json(self) -> dict[str, Any]:
        """Return the counts in a form that JSON can hold."""
        return {**dataclasses.asdict(self), "lengths": sorted(self.lengths.items())}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read the output of `to_json`."""
        return cls(
            read=values["read"],
            source_subwords=values["source_subwords"],
            target_subwords=values["target_subwords"],
            lengths=Counter(dict(values["lengths"])),
        )

    def split_counts(
        self, split: str, pair_filter: PairFilter, shards: list[str]
    ) -> SplitCounts:
        """Return the counts of a split that is complete.

        Args:
            split: Name of the split.
            pair_filter: Filter of the pairs.
            shards: Names of the files.

        Raises:
            UserError: If no pair was written.
        """
        if not self.lengths:
            reasons = (f"{count:,} {why}" for why, count in pair_filter.dropped.items())
            raise UserError(
                f"no {split} pair is left of {self.read:,} "
                f"({', '.join(reasons) or 'none read'}): give other text or wider "
                "limits (max_pair_length, max_length_ratio)"
            )
        longest = max(self.lengths)
        return SplitCounts(
            pairs_read=self.read,
            pairs_written=self.written,
            dropped=dict(sorted(pair_filter.dropped.items())),
            source_subwords=self.source_subwords,
            target_subwords=self.target_subwords,
            pairs_by_length=[self.lengths[length] for length in range(longest + 1)],
            also_held_out=pair_filter.also_held_out,
            shards=shards,
        )


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
