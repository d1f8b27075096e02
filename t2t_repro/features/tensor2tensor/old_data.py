"""Data that tensor2tensor's `t2t-datagen` prepared, read where it is.

The shards have our format, and a vocabulary of tensor2tensor is one of our tokenizers.
A manifest beside them is all that is missing, and the text of the held-out splits,
which is decoded from their ids. Nothing that is there is changed.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from t2t_repro import __version__
from t2t_repro.constants import EOS_ID, INPUTS, INPUTS_SEGMENTATION, TARGETS
from t2t_repro.data.manifest import (
    Manifest,
    SplitCounts,
    manifest_name,
    raw_text_names,
)
from t2t_repro.data.output_files import OutputFiles, locked_folder, write_errors
from t2t_repro.data.prepare import write_tokenizers
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.records import DamagedRecordError, example_ids, records_of
from t2t_repro.data.text_files import identity
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.package_adapter import PackageProblem
from t2t_repro.files import matching
from t2t_repro.progress import Progress
from t2t_repro.text import Tokenizer, load_tokenizer
from t2t_repro.text.lines import as_line
from t2t_repro.text.tokenizer_files import SIDES

logger = logging.getLogger(__name__)

_SHARD = re.compile(r"(.+)-(train|dev|test)-(\d{5})-of-(\d{5})")
_VOCABULARY = re.compile(r"vocab\..+\.(subwords|tokens)")

Names = dict[str, list[str]]


def adopt(
    problem: Problem,
    folder: str | Path,
    old_name: str = "",
    tokenizers: tuple[Tokenizer, Tokenizer] | None = None,
) -> PreparedData | None:
    """Describe the data of tensor2tensor in a folder, so that it can be read.

    Args:
        problem: The problem. One without text, such as `text_pairs`, reads the data of
            any problem of tensor2tensor.
        folder: Folder of the data.
        old_name: Name of tensor2tensor's problem. By default it is the problem's own
            if there is such data, or else the only one in the folder.
        tokenizers: Tokenizers of both sides, one object twice if they share one; by
            default the vocabulary in the folder.

    Returns:
        The data, or None if the folder has none for this problem.

    Raises:
        UserError: If there are several to choose from, or the data is incomplete,
            damaged, packed, or not of pairs.
    """
    folder = Path(folder)
    every = _shards(folder)
    old_name = old_name or _choose(problem, folder, every)
    if not old_name:
        return None
    shards, prefix = every.get(old_name, {}), problem.file_prefix
    _check_complete(folder, old_name, shards)
    tokenizers = tokenizers or _stored_tokenizers(problem, folder, old_name)
    logger.info("%s: reading what tensor2tensor prepared for %s", folder, old_name)
    outputs = OutputFiles(folder, prefix)
    with locked_folder(folder, prefix), write_errors(folder), outputs:
        # The name of a vocabulary of tensor2tensor need not tell its kind.
        names = write_tokenizers(outputs, tokenizers)
        splits = {
            split: _adopt_split(folder, split, shards[split], tokenizers, outputs)
            for split in SPLITS
            if split in shards
        }
        there = [name for split in shards.values() for name in split]
        manifest = Manifest(
            problem=problem.base.name,
            problem_version=problem.base.version,
            settings={},
            sources={"tensor2tensor": {"problem": old_name}},
            splits=splits,
            tokenizers=names,
            vocab_sizes={
                side: tokenizer.vocab_size
                for side, tokenizer in zip(SIDES, tokenizers, strict=True)
            },
            files={n: identity(folder / n) for n in there} | outputs.identities(),
            versions={"t2t_repro": __version__},
        )
        path = outputs.path(manifest_name(prefix))
        path.write_bytes(manifest.text().encode())
    return PreparedData(problem, folder, manifest)


def _stored_tokenizers(
    problem: Problem, folder: Path, old_name: str
) -> tuple[Tokenizer, Tokenizer]:
    base = problem.base.in_folder(folder)
    if isinstance(base, PackageProblem):
        return base.stored_tokenizers()
    shared = load_tokenizer(folder / _vocabulary_name(folder, old_name))
    return shared, shared


def _shards(folder: Path) -> dict[str, Names]:
    """Return the names of the shards in a folder by problem and split."""
    found: dict[str, Names] = {}
    for path in sorted(matching(folder, "*-of-*")):
        if (match := _SHARD.fullmatch(path.name)) and path.is_file():
            found.setdefault(match[1], {}).setdefault(match[2], []).append(path.name)
    return found


def _choose(problem: Problem, folder: Path, shards: dict[str, Names]) -> str:
    """Return the name of the data that a problem reads; "" if there is none.

    Raises:
        UserError: If a problem without text could read several.
    """
    if not (_vocabularies(folder) or isinstance(problem.base, PackageProblem)):
        return ""
    names = [name for name in shards if not (folder / manifest_name(name)).exists()]
    if problem.file_prefix in names:
        return problem.file_prefix
    if problem.has_text or not names:
        return ""
    if len(names) > 1:
        raise UserError(
            f"received data folder {folder} with data of {', '.join(names)}, expected "
            f"that of one problem: link the files of one ({names[0]}-* and its "
            "vocab.*) into a separate folder."
        )
    return names[0]


def _check_complete(folder: Path, old_name: str, shards: Names) -> None:
    """Refuse data without a shard, or without training shards.

    Raises:
        UserError: If it is refused.
    """
    for split in {"train": [], **shards}:
        there = shards.get(split, [])
        count = int(there[-1][-5:]) if there else 1
        names = [f"{old_name}-{split}-{k:05d}-of-{count:05d}" for k in range(count)]
        if missing := sorted({*names} - {*there}):
            raise UserError(
                f"received data folder {folder} without {missing[0]}, expected "
                f"{count} of them: copy the missing ones there."
            )


def _vocabularies(folder: Path) -> list[str]:
    """Return the names of the vocabularies in a folder."""
    names = [path.name for path in sorted(matching(folder, "vocab.*"))]
    return [name for name in names if _VOCABULARY.fullmatch(name)]


def _vocabulary_name(folder: Path, old_name: str) -> str:
    """Return the name of the vocabulary file of both sides.

    Args:
        folder: Folder of the data.
        old_name: Name of tensor2tensor's problem.

    Raises:
        UserError: If it is not known which file it is.
    """
    every = _vocabularies(folder)
    own = [name for name in every if name.startswith(f"vocab.{old_name}.")] or every
    if len(own) == 1:
        return own[0]
    raise UserError(
        f"received data folder {folder} with the shards of {old_name} and "
        f"{' and '.join(own) or 'no vocabulary'}, expected one vocab.{old_name}.*."
        "subwords or .tokens: put it there, or give the package of the problem as "
        "t2t_usr_dir."
    )


def _adopt_split(
    folder: Path,
    split: str,
    shards: list[str],
    tokenizers: Sequence[Tokenizer],
    outputs: OutputFiles,
) -> SplitCounts:
    """Count the pairs of a split, and write the text of one that is not trained on."""
    limits = [tokenizer.vocab_size for tokenizer in tokenizers]
    lengths: Counter[int] = Counter()
    totals, texts = np.zeros(2, np.int64), []
    with Progress(len(shards), "shard", warm=True) as progress:
        for name in shards:
            for pair in pairs_of(folder / name, limits):
                sizes = [len(ids) for ids in pair]
                totals += sizes
                lengths[max(sizes)] += 1
                if split != "train":
                    sides = zip(tokenizers, pair, strict=True)
                    texts.append([tokenizer.decode(ids) for tokenizer, ids in sides])
            progress.advance()
    if split != "train":
        for side, name in enumerate(raw_text_names(outputs.prefix, split)):
            lines = "".join(f"{as_line(text[side])}\n" for text in texts)
            outputs.path(name).write_bytes(lines.encode("utf-8", "replace"))
    pairs = lengths.total()
    return SplitCounts(
        pairs_read=pairs,
        pairs_written=pairs,
        dropped={},
        source_subwords=int(totals[0]),
        target_subwords=int(totals[1]),
        pairs_by_length=[lengths[n] for n in range(max(lengths, default=0) + 1)],
        also_held_out=0,
        shards=shards,
    )


class PackedShardError(UserError):
    """Error raised for a shard with several pairs in a row."""


def pairs_of(
    path: Path, limits: Sequence[int]
) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yield the ids of inputs and targets in a shard.

    Args:
        path: The shard.
        limits: Number of ids of the inputs and of the targets.

    Raises:
        PackedShardError: If it has several pairs in a row.
        UserError: If it is damaged, or has something else.
    """
    try:
        for record in records_of(path):
            ids = example_ids(record)
            if INPUTS_SEGMENTATION in ids:
                raise PackedShardError(
                    f"{path} has packed examples, expected one pair in each: prepare "
                    "it without packing."
                )
            if not ids.keys() >= {INPUTS, TARGETS}:
                raise _other(path, f"examples of {sorted(ids)}", "only pairs are read")
            pair = ids[INPUTS], ids[TARGETS]
            for side, limit in zip(pair, limits, strict=True):
                is_known = len(side) and min(side) >= 0 and max(side) < limit
                if not is_known or side[-1] != EOS_ID:
                    raise _other(
                        path,
                        f"the ids {list(side)[:10]}, ...",
                        f"ids below {limit} that end with {EOS_ID}: this is the "
                        "data of another vocabulary",
                    )
            yield pair
    except (EOFError, DamagedRecordError) as error:
        raise _other(path, str(error), "copy it again") from error


def _other(path: Path, found: str, advice: str) -> UserError:
    return UserError(f"{path} has {found}, expected inputs and targets: {advice}.")
