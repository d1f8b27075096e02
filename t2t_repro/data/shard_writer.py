"""Write the shards of every split, and the raw text of dev and test."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from t2t_repro.data.encoding import PairEncoder, TextBatch, ordered_map
from t2t_repro.data.filters import PairFilter
from t2t_repro.data.manifest import SplitCounts, raw_text_names
from t2t_repro.data.output_files import OutputFiles
from t2t_repro.data.problem import SPLITS, Problem, checked_pairs, copies_of
from t2t_repro.data.records import record_writer, shuffle_records
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
    num_workers: int,
) -> dict[str, SplitCounts]:
    """Write all splits of a problem.

    Args:
        problem: The problem.
        tmp_dir: Folder for downloads, or None for the source's default.
        settings: Settings of the filters and shards.
        tokenizers: Tokenizers of the inputs and of the targets.
        outputs: Collects the files.
        num_workers: Number of processes that encode the training text.

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
            counts[split] = _write_evaluation_split(
                split,
                batches,
                PairEncoder(tokenizers),
                PairFilter(settings, split),
                outputs,
                held_out,
            )
            continue
        counts[split] = _write_training_split(
            batches,
            # Only training text is sampled: scores compare the usual subwords.
            PairEncoder(tokenizers, settings if settings.subword_sampling else None),
            PairFilter(settings, split, held_out),
            outputs,
            settings,
            num_workers,
            problem.num_pairs(split, tmp_dir),
        )
    return {split: counts[split] for split in SPLITS if split in counts}


def _write_training_split(
    batches: Iterable[TextBatch],
    encoder: PairEncoder,
    pair_filter: PairFilter,
    outputs: OutputFiles,
    settings: PrepareSettings,
    num_workers: int,
    num_pairs: int | None,
) -> SplitCounts:
    """Deal the pairs to the shards in turn, then shuffle each shard."""
    logger.info("encoding the training pairs")
    names = _shard_names(outputs.prefix, "train", settings.num_shards)
    paths = [outputs.path(name) for name in names]
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(Progress(num_pairs, "pair", warm=True))
        writers = [stack.enter_context(record_writer(path)) for path in paths]
        write_next = itertools.cycle(writers)
        for batch in ordered_map(encoder, batches, num_workers):
            for record, write in zip(
                pair_filter.records(batch), write_next, strict=False
            ):
                write(record)
            progress.advance(len(batch.digests))
    counts = pair_filter.counts(names)
    logger.info("shuffling %d shards", len(names))
    with Progress(len(names), "shard", warm=True) as progress:
        for number, path in enumerate(paths):
            shuffle_records(path, f"{settings.shuffle_seed}/{number}")
            progress.advance()
    return counts


def _write_evaluation_split(
    split: str,
    batches: Iterable[TextBatch],
    encoder: PairEncoder,
    pair_filter: PairFilter,
    outputs: OutputFiles,
    held_out: set[int],
) -> SplitCounts:
    """Write a split that is not trained on, and add its digests to `held_out`."""
    names = _shard_names(outputs.prefix, split, 1)
    raw_names = raw_text_names(outputs.prefix, split)
    with contextlib.ExitStack() as stack:
        write = stack.enter_context(record_writer(outputs.path(names[0])))
        sources, targets = (
            stack.enter_context(outputs.path(name).open("wb")) for name in raw_names
        )
        for batch in batches:
            _write_lines(sources, batch.sources)
            _write_lines(targets, batch.targets)
            encoded = encoder(batch)
            held_out.update(encoded.digests.tolist())
            for record in pair_filter.records(encoded):
                write(record)
    return pair_filter.counts(names)


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
