"""Write the shards and the raw text of every split of a problem."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from t2t_repro.data.encoding import (
    EncodedBatch,
    PairEncoder,
    TextBatch,
)
from t2t_repro.data.filters import PairFilter
from t2t_repro.data.manifest import SplitCounts, raw_text_names
from t2t_repro.data.output_files import OutputFiles
from t2t_repro.data.problem import SPLITS, Problem, checked_pairs, copies_of
from t2t_repro.data.records import record_writer, shuffle_records
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
    tokenizers: tuple[Tokenizer, Tokenizer],
    outputs: OutputFiles,
    execution: Execution,
) -> dict[str, SplitCounts]:
    """Write all splits of a problem.

    Args:
        problem: The problem.
        tmp_dir: Folder for downloads, or None for the source's default.
        settings: Settings of the filters and shards.
        tokenizers: Tokenizers of the inputs and of the targets.
        outputs: Collects the files.
        execution: Number of worker processes, and whether to draw progress bars.

    Returns:
        The counts of each split, in the order train, dev, test.

    Raises:
        OSError: If a file cannot be written.
        UserError: If the text cannot be used, or no pair of a split is left.
    """
    held_out: set[int] = set()
    counts = {}
    # Training comes last, because its pairs are looked up in the other splits.
    for split in sorted(problem.splits, key=SPLITS.index, reverse=True):
        batches = _batches(problem, split, tmp_dir)
        if split != "train":
            kept = _KeptPairs(split, PairFilter(settings, is_training=False))
            encoder = PairEncoder(tokenizers)
            counts[split] = _write_evaluation_split(
                batches, encoder, kept, outputs, held_out
            )
            continue
        pair_filter = PairFilter(settings, is_training=True, held_out=held_out)
        counts[split] = _write_training_split(
            batches,
            # Only training text is sampled: scores compare the usual subwords.
            PairEncoder(tokenizers, settings if settings.subword_sampling else None),
            _KeptPairs(split, pair_filter),
            outputs,
            settings,
            execution,
            problem.num_pairs(split, tmp_dir),
        )
    return {split: counts[split] for split in SPLITS if split in counts}


def _write_training_split(
    batches: Iterable[TextBatch],
    encoder: PairEncoder,
    kept: _KeptPairs,
    outputs: OutputFiles,
    settings: PrepareSettings,
    execution: Execution,
    num_pairs: int | None,
) -> SplitCounts:
    """Write consecutive pairs to consecutive shards, then shuffle each shard."""
    logger.info("encoding the training pairs")
    names = _shard_names(outputs.prefix, "train", settings.num_shards)
    paths = [outputs.path(name) for name in names]
    bar = {"warm": True, "draw_bar": execution.show_progress}
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(Progress(num_pairs, "pair", **bar))
        writers = [stack.enter_context(record_writer(path)) for path in paths]
        write_next = itertools.cycle(writers)
        for batch in ordered_map(encoder, batches, execution):
            for record, write in zip(kept.records(batch), write_next, strict=False):
                write(record)
            progress.advance(len(batch.digests))
    counts = kept.counts(names)
    logger.info("shuffling %d shards", len(names))
    with Progress(len(names), "shard", **bar) as progress:
        for number, path in enumerate(paths):
            shuffle_records(path, f"{settings.shuffle_seed}/{number}")
            progress.advance()
    return counts


def _write_evaluation_split(
    batches: Iterable[TextBatch],
    encoder: PairEncoder,
    kept: _KeptPairs,
    outputs: OutputFiles,
    held_out: set[int],
) -> SplitCounts:
    """Write a split that is not trained on, and add its digests to `held_out`."""
    names = _shard_names(outputs.prefix, kept.split, 1)
    raw_names = raw_text_names(outputs.prefix, kept.split)
    with contextlib.ExitStack() as stack:
        sources, targets = (
            stack.enter_context(outputs.path(name).open("wb")) for name in raw_names
        )
        write = stack.enter_context(record_writer(outputs.path(names[0])))
        for batch in batches:
            _write_lines(sources, batch.sources)
            _write_lines(targets, batch.targets)
            encoded = encoder(batch)
            held_out.update(encoded.digests.tolist())
            for record in kept.records(encoded):
                write(record)
    return kept.counts(names)


class _KeptPairs:
    """The pairs of a split that are written, and their counts.

    Args:
        split: Name of the split.
        pair_filter: Filter of the pairs.
    """

    def __init__(self, split: str, pair_filter: PairFilter) -> None:
        self.split = split
        self._filter = pair_filter
        self._read = 0
        self._subwords = np.zeros(2, np.int64)
        self._lengths: Counter[int] = Counter()

    def records(self, batch: EncodedBatch) -> Iterator[bytes]:
        """Filter and count the pairs of a batch, and return the records to write."""
        kept = self._filter.kept(batch)
        self._read += len(kept)
        written = np.repeat(kept, batch.copies)
        lengths = batch.written_lengths[:, written]
        self._subwords += lengths.sum(axis=1)
        self._lengths.update(lengths.max(axis=0).tolist())
        return itertools.compress(batch.records, written)

    def counts(self, shards: list[str]) -> SplitCounts:
        """Return the counts of the complete split, whose files have these names.

        Raises:
            UserError: If no pair was written.
        """
        dropped = self._filter.dropped
        if not self._lengths:
            reasons = (f"{count:,} {why}" for why, count in dropped.items())
            raise UserError(
                f"no {self.split} pair is left of {self._read:,} "
                f"({', '.join(reasons) or 'none read'}): give other text or wider "
                "limits (max_pair_length, max_length_ratio)"
            )
        source_subwords, target_subwords = self._subwords.tolist()
        longest = max(self._lengths)
        return SplitCounts(
            pairs_read=self._read,
            pairs_written=self._lengths.total(),
            dropped=dict(sorted(dropped.items())),
            source_subwords=source_subwords,
            target_subwords=target_subwords,
            pairs_by_length=[self._lengths[length] for length in range(longest + 1)],
            also_held_out=self._filter.also_held_out,
            shards=shards,
        )


def _shard_names(prefix: str, split: str, count: int) -> list[str]:
    return [f"{prefix}-{split}-{index:05d}-of-{count:05d}" for index in range(count)]


def _batches(
    problem: Problem, split: str, tmp_dir: str | Path | None
) -> Iterator[TextBatch]:
    pairs = checked_pairs(problem, split, tmp_dir)
    for number in itertools.count():
        batch = list(itertools.islice(pairs, _PAIRS_AT_A_TIME))
        if not batch:
            return
        sources, targets = zip(*batch, strict=True)
        yield TextBatch(
            sources=sources,
            targets=targets,
            # In this process: a worker process might not find the user's problem.
            written=[problem.encode_target(target) for target in targets],
            copies=[copies_of(pair) if split == "train" else 1 for pair in batch],
            number=number,
        )


def _write_lines(file: BinaryIO, texts: Iterable[str]) -> None:
    for text in texts:
        # A NUL would make the file look damaged; SentencePiece cannot read one either.
        line = text.replace("\n", " ").replace("\0", " ")
        file.write(line.encode("utf-8", "replace") + b"\n")
