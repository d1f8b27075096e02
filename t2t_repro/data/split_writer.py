"""Write the shards and the raw text of every split of a problem."""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from t2t_repro.constants import EOS_ID
from t2t_repro.data.filters import PairFilter, pair_digest
from t2t_repro.data.manifest import SplitCounts, raw_text_names
from t2t_repro.data.output_files import OutputFiles
from t2t_repro.data.pairs import Pair, checked_pairs
from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.records import ShardWriter, example_bytes
from t2t_repro.errors import UserError
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer

logger = logging.getLogger(__name__)

_PAIRS_AT_A_TIME = 2_000
_PAIRS_PER_LOG_LINE = 500_000


def write_splits(
    problem: Problem,
    tmp_dir: str | Path | None,
    settings: PrepareSettings,
    tokenizers: tuple[Tokenizer, Tokenizer],
    outputs: OutputFiles,
) -> dict[str, SplitCounts]:
    """Write all splits of a problem.

    Args:
        problem: The problem.
        tmp_dir: Folder for downloads, or None for the source's default.
        settings: Settings of the filters and shards.
        tokenizers: Tokenizers of the inputs and of the targets.
        outputs: Collects the files.

    Returns:
        The counts of each split, in the order train, dev, test.

    Raises:
        UserError: If the text cannot be used, or no pair of a split is left.
    """
    held_out: set[int] = set()
    counts = {}
    # Training comes last, because its pairs are looked up in the other splits.
    for split in sorted(problem.splits, key=SPLITS.index, reverse=True):
        pairs = checked_pairs(problem, split, tmp_dir)
        if split == "train":
            logger.info("encoding the training pairs")
            pair_filter = PairFilter(
                settings, is_training=True, held_out=frozenset(held_out)
            )
            shard_count, seed = settings.num_shards, settings.shuffle_seed
        else:
            pairs = _write_raw_text(pairs, split, outputs, held_out)
            pair_filter = PairFilter(settings, is_training=False)
            shard_count, seed = 1, None
        names = [
            f"{outputs.prefix}-{split}-{index:05d}-of-{shard_count:05d}"
            for index in range(shard_count)
        ]
        with ShardWriter([outputs.path(name) for name in names], seed) as writer:
            totals = _write_pairs(problem, pairs, tokenizers, pair_filter, writer)
        counts[split] = _counts(split, totals, pair_filter, names)
    return {split: counts[split] for split in SPLITS if split in counts}


def _write_raw_text(
    pairs: Iterable[Pair], split: str, outputs: OutputFiles, digests: set[int]
) -> Iterator[Pair]:
    """Yield the pairs, and write their text and collect their digests."""
    names = raw_text_names(outputs.prefix, split)
    source_path, target_path = (outputs.path(name) for name in names)
    with source_path.open("wb") as source_file, target_path.open("wb") as target_file:
        for source, target in pairs:
            _write_line(source_file, source)
            _write_line(target_file, target)
            digests.add(pair_digest(source, target))
            yield source, target


def _write_line(file: BinaryIO, text: str) -> None:
    file.write(text.replace("\n", " ").encode("utf-8", "replace") + b"\n")


@dataclasses.dataclass
class _Totals:
    """Counts of the pairs of a split that were read and written."""

    read: int = 0
    source_subwords: int = 0
    target_subwords: int = 0
    lengths: Counter[int] = dataclasses.field(default_factory=Counter)

    def add(self, source_length: int, target_length: int) -> None:
        """Count a pair that was written."""
        self.source_subwords += source_length
        self.target_subwords += target_length
        self.lengths[max(source_length, target_length)] += 1


def _write_pairs(
    problem: Problem,
    pairs: Iterable[Pair],
    tokenizers: tuple[Tokenizer, Tokenizer],
    pair_filter: PairFilter,
    writer: ShardWriter,
) -> _Totals:
    """Encode the pairs, and write the ones that the filter keeps."""
    totals = _Totals()
    for batch in _batches(pairs):
        source_ids = tokenizers[0].encode_batch([source for source, _ in batch])
        written = [problem.encode_target(target) for _, target in batch]
        target_ids = tokenizers[1].encode_batch(written)
        records = []
        for pair, inputs, targets in zip(batch, source_ids, target_ids, strict=True):
            if not pair_filter.keeps(pair, inputs, targets):
                continue
            records.append(example_bytes([*inputs, EOS_ID], [*targets, EOS_ID]))
            totals.add(len(inputs) + 1, len(targets) + 1)
        writer.write(records)
        totals.read += len(batch)
        if totals.read % _PAIRS_PER_LOG_LINE == 0:
            logger.info("%d pairs encoded", totals.read)
    return totals


def _batches(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    iterator = iter(pairs)
    while batch := list(itertools.islice(iterator, _PAIRS_AT_A_TIME)):
        yield batch


def _counts(
    split: str, totals: _Totals, pair_filter: PairFilter, shards: list[str]
) -> SplitCounts:
    lengths = totals.lengths
    if not lengths:
        reasons = (f"{count:,} {why}" for why, count in pair_filter.dropped.items())
        raise UserError(
            f"no {split} pair is left of {totals.read:,} "
            f"({', '.join(reasons) or 'none read'}): give other text or wider limits "
            "(max_pair_length, max_length_ratio)"
        )
    return SplitCounts(
        pairs_read=totals.read,
        pairs_written=lengths.total(),
        dropped=dict(sorted(pair_filter.dropped.items())),
        source_subwords=totals.source_subwords,
        target_subwords=totals.target_subwords,
        pairs_by_length=[lengths[length] for length in range(max(lengths) + 1)],
        also_held_out=pair_filter.also_held_out,
        shards=shards,
    )
