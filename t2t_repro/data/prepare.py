"""From a problem's text to shards of ids, raw text for scoring, and a manifest.

Nothing is written before all text has been found readable, and nothing that is
half-written keeps its final name.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Self

import sentencepiece

from t2t_repro import __version__
from t2t_repro.constants import EOS_ID
from t2t_repro.data import manifest as manifests
from t2t_repro.data.filters import PairFilter, pair_digest
from t2t_repro.data.manifest import Manifest, SplitCounts
from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.records import ShardWriter, example_bytes
from t2t_repro.data.text_files import identity
from t2t_repro.data.vocabulary import given_tokenizers, learn_tokenizers
from t2t_repro.errors import UserError
from t2t_repro.files import INCOMPLETE
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer

logger = logging.getLogger(__name__)

_PAIRS_AT_A_TIME = 2_000
_PAIRS_PER_LOG_LINE = 500_000


def prepare(
    problem: Problem,
    data_dir: str | Path,
    tmp_dir: str | Path | None = None,
    settings: PrepareSettings | None = None,
) -> Manifest:
    """Writes a problem's data, or finds it prepared in just this way.

    Args:
        problem: the problem; a `_rev` one shares its base's files.
        data_dir: the folder to write to.
        tmp_dir: folder for downloads, or None for the source's own default.
        settings: how to prepare it, by default as the problem says.

    Raises:
        UserError: if the text cannot be used, or the folder holds the problem's data
            prepared otherwise, or damaged.
    """
    problem, data_dir = problem.base, Path(data_dir)
    settings = settings or problem.prepare_settings
    sources = manifests.recorded_sources(problem, settings, tmp_dir)
    found = Manifest.load(data_dir, problem)
    if found is not None:
        manifests.check_settings(
            found,
            data_dir,
            problem_version=problem.version,
            settings=manifests.recorded_settings(settings),
            sources=sources,
        )
        manifests.check_files(found, data_dir, checksums=True)
        logger.info("%s is prepared in %s already", problem.name, data_dir)
        return found
    return _prepare_afresh(problem, data_dir, tmp_dir, settings, sources)


def _prepare_afresh(
    problem: Problem,
    data_dir: Path,
    tmp_dir: str | Path | None,
    settings: PrepareSettings,
    sources: dict[str, dict[str, object]],
) -> Manifest:
    logger.info("%s: reading the text", problem.name)
    problem.check(tmp_dir)
    tokenizers = given_tokenizers(problem, settings)
    if tokenizers is None:
        logger.info("learning %d subwords", settings.vocab_size)
        tokenizers = learn_tokenizers(problem, settings, tmp_dir)
    try:
        with _OutputFiles(data_dir, problem.file_prefix) as outputs:
            tokenizer_names = _write_tokenizers(outputs, tokenizers)
            splits = _write_splits(problem, tmp_dir, settings, tokenizers, outputs)
    except OSError as error:
        raise UserError(
            f"writing to {data_dir} failed: {error.strerror or error}"
        ) from error
    manifest = Manifest(
        problem=problem.name,
        problem_version=problem.version,
        settings=manifests.recorded_settings(settings),
        sources=sources,
        splits=splits,
        tokenizers=tokenizer_names,
        vocab_sizes={
            side: tokenizer.vocab_size
            for side, tokenizer in zip(tokenizer_names, tokenizers, strict=True)
        },
        files={name: identity(data_dir / name) for name in outputs.names},
        versions={"t2t_repro": __version__, "sentencepiece": sentencepiece.__version__},
    )
    manifest.save(Manifest.path(data_dir, problem))
    return manifest


class _OutputFiles:
    """Files that get their names together when all are whole, or not at all.

    Args:
        folder: where they go; made if it is not there.
        prefix: what their names begin with.

    Attributes:
        names: their names, in the order they were asked for.
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._made_folder = not folder.exists()
        self.prefix = prefix
        self.names: list[str] = []

    def path(self, name: str) -> Path:
        """Gives the path under which a file is written until it is whole."""
        self.names.append(name)
        return self._folder / f"{name}{INCOMPLETE}"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._remove_incomplete()
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is None:
            for name in self.names:
                os.replace(self._folder / f"{name}{INCOMPLETE}", self._folder / name)
            return
        self._remove_incomplete()
        if self._made_folder and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _remove_incomplete(self) -> None:
        for separator in "-.":
            pattern = f"{self.prefix}{separator}*{INCOMPLETE}"
            for path in self._folder.glob(pattern):
                path.unlink()


def _write_tokenizers(
    outputs: _OutputFiles, tokenizers: tuple[Tokenizer, Tokenizer]
) -> dict[str, str]:
    source, target = tokenizers
    if source is target:
        name = f"{outputs.prefix}{source.filename_suffix}"
        outputs.path(name).write_bytes(source.to_bytes())
        return {"inputs": name, "targets": name}
    names = {
        side: f"{outputs.prefix}.{side}{tokenizer.filename_suffix}"
        for side, tokenizer in zip(("inputs", "targets"), tokenizers, strict=True)
    }
    for name, tokenizer in zip(names.values(), tokenizers, strict=True):
        outputs.path(name).write_bytes(tokenizer.to_bytes())
    return names


def _write_splits(
    problem: Problem,
    tmp_dir: str | Path | None,
    settings: PrepareSettings,
    tokenizers: tuple[Tokenizer, Tokenizer],
    outputs: _OutputFiles,
) -> dict[str, SplitCounts]:
    held_out: set[int] = set()
    counts = {}
    # Training comes last: its pairs are looked up among those of the other splits.
    for split in sorted(problem.splits, key=SPLITS.index, reverse=True):
        pairs = problem.pairs(split, tmp_dir)
        if split == "train":
            logger.info("encoding the training pairs")
            pair_filter = PairFilter(
                settings, is_training=True, held_out=frozenset(held_out)
            )
            shard_count, seed = settings.num_shards, settings.seed
        else:
            pairs = _keep_raw(pairs, split, outputs, held_out)
            pair_filter = PairFilter(settings, is_training=False)
            shard_count, seed = 1, None
        names = [
            f"{outputs.prefix}-{split}-{index:05d}-of-{shard_count:05d}"
            for index in range(shard_count)
        ]
        with ShardWriter([outputs.path(name) for name in names], seed) as writer:
            read, totals = _write_pairs(problem, pairs, tokenizers, pair_filter, writer)
        counts[split] = _counts(split, read, totals, pair_filter, names)
    return {split: counts[split] for split in SPLITS if split in counts}


def _keep_raw(
    pairs: Iterable[tuple[str, str]],
    split: str,
    outputs: _OutputFiles,
    digests: set[int],
) -> Iterator[tuple[str, str]]:
    """Passes pairs on, writing their text and noting their digests."""
    names = manifests.raw_text_names(outputs.prefix, split)
    source_path, target_path = (outputs.path(name) for name in names)
    with source_path.open("wb") as source_file, target_path.open("wb") as target_file:
        for source, target in pairs:
            _write_line(source_file, source)
            _write_line(target_file, target)
            digests.add(pair_digest(source, target))
            yield source, target


def _write_line(file: BinaryIO, text: str) -> None:
    file.write(text.replace("\n", " ").encode("utf-8", "replace") + b"\n")


def _write_pairs(
    problem: Problem,
    pairs: Iterable[tuple[str, str]],
    tokenizers: tuple[Tokenizer, Tokenizer],
    pair_filter: PairFilter,
    writer: ShardWriter,
) -> tuple[int, _Totals]:
    """Encodes and writes the pairs that the filter keeps.

    Returns:
        The number of pairs read, and what was written.
    """
    read, totals = 0, _Totals()
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
        read += len(batch)
        if read % _PAIRS_PER_LOG_LINE == 0:
            logger.info("%d pairs encoded", read)
    return read, totals


@dataclasses.dataclass
class _Totals:
    """What was written to the shards of a split."""

    source_subwords: int = 0
    target_subwords: int = 0
    lengths: Counter[int] = dataclasses.field(default_factory=Counter)

    def add(self, source_length: int, target_length: int) -> None:
        self.source_subwords += source_length
        self.target_subwords += target_length
        self.lengths[max(source_length, target_length)] += 1


def _batches(
    pairs: Iterable[tuple[str, str]],
) -> Iterator[list[tuple[str, str]]]:
    iterator = iter(pairs)
    while batch := list(itertools.islice(iterator, _PAIRS_AT_A_TIME)):
        yield batch


def _counts(
    split: str,
    read: int,
    totals: _Totals,
    pair_filter: PairFilter,
    shards: list[str],
) -> SplitCounts:
    lengths = totals.lengths
    if not lengths:
        reasons = (f"{count:,} {why}" for why, count in pair_filter.dropped.items())
        raise UserError(
            f"no {split} pair is left of {read:,} ({', '.join(reasons) or 'none read'})"
            f": give other text or wider limits (--max_length, --max_length_ratio)"
        )
    return SplitCounts(
        pairs_read=read,
        pairs_written=lengths.total(),
        dropped=dict(sorted(pair_filter.dropped.items())),
        source_subwords=totals.source_subwords,
        target_subwords=totals.target_subwords,
        pairs_by_length=[lengths[length] for length in range(max(lengths) + 1)],
        also_held_out=pair_filter.also_held_out,
        shards=shards,
    )
