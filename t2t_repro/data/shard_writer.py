"""Write shards and raw text under temporary names, and rename all at the end."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

from t2t_repro.data.encoding import PairEncoder, TextBatch, ordered_map
from t2t_repro.data.filters import PairFilter
from t2t_repro.data.manifest import SplitCounts, manifest_name, raw_text_names
from t2t_repro.data.problem import SPLITS, Problem, checked_pairs, copies_of
from t2t_repro.data.records import record_writer, shuffle_records
from t2t_repro.data.text_files import identity
from t2t_repro.errors import UserError
from t2t_repro.files import (
    INCOMPLETE,
    complete_name,
    folder_lock,
    incomplete_name,
    matching,
    read_json,
)
from t2t_repro.progress import Progress
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer

logger = logging.getLogger(__name__)


# What follows the prefix in the names of shards, raw text and tokenizers.
_OUTPUT = re.compile(
    r"-(train|dev|test)(-\d+-of-\d+|\.(inputs|targets)\.txt)"
    r"|(\.inputs|\.targets)?\.(model|symbols)"
)


class OutputFiles:
    """Files that are renamed together when all are complete, or not at all.

    The file that was requested last, the manifest, is renamed last. A file that another
    program made is never replaced.

    Args:
        folder: Folder of the files.
        prefix: Prefix of their names.

    Attributes:
        prefix: Prefix of their names.
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._incomplete: dict[str, Path] = {}
        self._manifest = manifest_name(prefix)
        self.prefix = prefix

    def path(self, name: str) -> Path:
        """Return the temporary path to write a file to."""
        self._incomplete[name] = self._folder / incomplete_name(name)
        return self._incomplete[name]

    def identities(self) -> dict[str, dict[str, Any]]:
        """Return the size and sha256 of every file so far, by its name."""
        return {name: identity(path) for name, path in self._incomplete.items()}

    def refuse_foreign(self) -> None:
        """Refuse a folder with files under these names that another program made.

        Raises:
            UserError: If there are such files; the message names the first one.
        """
        named = self._renamed_files()
        foreign = [path.name for path in self._existing_files() if path not in named]
        if not foreign:
            return
        others = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
        raise UserError(
            f"{self._folder} has files of {self.prefix} ({foreign[0]}{others}) but no "
            f"{self._manifest}: tensor2tensor or another program made "
            "them, and they cannot be read here.\n"
            "Give another data_dir, or move these files away."
        )

    def __enter__(self) -> Self:
        left = [*self._renamed_files(), *(path for _, path in self._leftovers())]
        for path in left:
            path.unlink()
        if left:
            logger.info(
                "%s: an earlier preparation was interrupted and is done again; its %d "
                "file(s) are removed",
                self._folder,
                len(left),
            )
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is not None:
            for _name, path in self._leftovers():
                path.unlink()
            return
        for name, path in self._incomplete.items():
            os.replace(path, self._folder / name)

    def _leftovers(self) -> list[tuple[str, Path]]:
        """Return the names and paths of the incomplete files of a killed process."""
        named = [
            (complete_name(path.name), path)
            for path in matching(self._folder, f"{self.prefix}[-.]*{INCOMPLETE}")
        ]
        return [
            (name, path)
            for name, path in named
            if name == self._manifest or self._is_output(name)
        ]

    def _existing_files(self) -> list[Path]:
        """Return the files that have names of outputs, in the order of their names."""
        return sorted(
            path
            for path in matching(self._folder, f"{self.prefix}[-.]*")
            if self._is_output(path.name)
        )

    def _is_output(self, name: str) -> bool:
        return _OUTPUT.fullmatch(name.removeprefix(self.prefix)) is not None

    def _renamed_files(self) -> list[Path]:
        """Return the files that a killed process had already renamed.

        Its manifest, which lists them, still has its temporary name.
        """
        manifest = dict(self._leftovers()).get(self._manifest)
        try:
            files = dict(read_json(manifest)["files"]) if manifest else {}
        except (ValueError, KeyError, TypeError):
            files = {}  # killed while it wrote the manifest, or not ours
        return [
            path
            for path in self._existing_files()
            if path.name in files and identity(path) == files[path.name]
        ]


@contextlib.contextmanager
def locked_folder(folder: Path, prefix: str) -> Generator[None]:
    """Create and lock a folder; remove it if the block fails and it is empty.

    Args:
        folder: Folder that the block writes to.
        prefix: Prefix of the files that the block writes. Another process can write
            files with another prefix at the same time.

    Raises:
        UserError: If another process is writing files with this prefix, or the folder
            cannot be written to.
    """
    made = not folder.exists()
    try:
        with contextlib.ExitStack() as stack:
            with write_errors(folder):
                lock = folder_lock(folder, f"{prefix}.lock", "preparing data")
                stack.enter_context(lock)
            yield
    except BaseException:
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


@contextlib.contextmanager
def write_errors(folder: Path) -> Generator[None]:
    """Turn an error of the system into one line for the user.

    Raises:
        UserError: If the block raises an `OSError`, as on a full disk.
    """
    try:
        yield
    except OSError as error:
        raise UserError(
            f"writing to {folder} failed: {error.strerror or error}"
        ) from error


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
    """Write consecutive pairs to consecutive shards, then shuffle each shard."""
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
