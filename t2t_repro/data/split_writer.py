"""Write the shards and the raw text of every split of a problem."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from t2t_repro import __version__
from t2t_repro.data.agreement import Sources
from t2t_repro.data.encoding import PairEncoder, TextBatch
from t2t_repro.data.filters import PairFilter
from t2t_repro.data.manifest import SplitCounts, raw_text_names
from t2t_repro.data.output_files import OutputFiles
from t2t_repro.data.pairs import Pair, checked_pairs
from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.reading_progress import progress_of
from t2t_repro.data.records import write_records
from t2t_repro.data.repeated_pair import copies_of
from t2t_repro.data.running_counts import RunningCounts
from t2t_repro.data.subword_sampling import SubwordSampling
from t2t_repro.data.training_split import TrainingSplit, training_key
from t2t_repro.data.work_folder import WorkFolder
from t2t_repro.data.worker_pool import Execution
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
