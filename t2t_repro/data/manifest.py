"""The manifest of a data folder: counts, settings, sources and checksums.

`<problem>.manifest.json` is written last, so files without a manifest are never used.
It lists every file, so other files in the folder are never read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.files import description_text, load_description
from t2t_repro.text_tables import aligned

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData


FORMAT = 2


@dataclasses.dataclass(frozen=True)
class SplitCounts:
    """Counts of one split.

    Attributes:
        pairs_read: Number of pairs that the problem has.
        pairs_written: Number of pairs in the shards, copies included.
        dropped: Number of pairs left out of the shards, by reason, without copies.
        source_subwords: Number of ids of all inputs in the shards, including the ends
            of sentences.
        target_subwords: Number of ids of all targets in the shards, including the ends
            of sentences.
        pairs_by_length: Number of pairs in the shards, copies included, that have 0, 1,
            2, ... subwords on their longer side, including the end of sentence.
        also_held_out: Number of training pairs that are also in the dev or test text.
        shards: Names of the TFRecord files.
    """

    pairs_read: int
    pairs_written: int
    dropped: dict[str, int]
    source_subwords: int
    target_subwords: int
    pairs_by_length: list[int]
    also_held_out: int
    shards: list[str]

    @property
    def pairs_kept(self) -> int:
        """Number of pairs that are not left out, without copies."""
        return self.pairs_read - sum(self.dropped.values())

    def longer_than(self, length: int) -> int:
        """Return the number of pairs in the shards with a side above this length."""
        return sum(self.pairs_by_length[length + 1 :])


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The content of a problem's manifest file.

    Attributes:
        problem: Name of the problem, without `_rev`.
        problem_version: Its `Problem.version`.
        settings: Return value of `PrepareSettings.recorded`.
        sources: Return value of `Problem.source_identities`, and the identities of the
            user's own models.
        splits: Counts of each split, in the order train, dev, test.
        tokenizers: File names of the tokenizers of "inputs" and "targets".
        vocab_sizes: Vocabulary sizes of "inputs" and "targets".
        files: Bytes and sha256 of every file, by its name.
        versions: Versions of the software that prepared the data.
        format: Version of the file's format.
    """

    problem: str
    problem_version: int
    settings: dict[str, Any]
    sources: dict[str, dict[str, Any]]
    splits: dict[str, SplitCounts]
    tokenizers: dict[str, str]
    vocab_sizes: dict[str, int]
    files: dict[str, dict[str, Any]]
    versions: dict[str, str]
    format: int = FORMAT

    @classmethod
    def load(cls, folder: str | Path, problem: Problem) -> Self | None:
        """Read a problem's manifest, or return None if there is none.

        Raises:
            UserError: If it is damaged or has another format.
        """
        return load_description(
            Path(folder) / manifest_name(problem.file_prefix),
            cls._from_values,
            expected_format=FORMAT,
            advice=repair_advice(folder),
        )

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        splits = {
            name: SplitCounts(**counts) for name, counts in values.pop("splits").items()
        }
        return cls(splits=splits, **values)

    def text(self) -> str:
        """Return the content of the manifest's file."""
        return description_text(dataclasses.asdict(self))

    @property
    def digest(self) -> str:
        """The sha256 of the names and contents of all files."""
        contents = sorted((name, facts["sha256"]) for name, facts in self.files.items())
        return hashlib.sha256(json.dumps(contents).encode()).hexdigest()


def manifest_name(prefix: str) -> str:
    """Return the name of the manifest file of data whose files have this prefix."""
    return f"{prefix}.manifest.json"


def raw_text_names(prefix: str, split: str) -> tuple[str, str]:
    """Return the names of the text files of the two sides of a split."""
    return f"{prefix}-{split}.inputs.txt", f"{prefix}-{split}.targets.txt"


def missing_data_folder(folder: str | Path, origin: str = "") -> UserError:
    """Return the error for a folder of prepared data that does not exist.

    Args:
        folder: The folder.
        origin: Phrase on who named it, with commas around it, or "".
    """
    return UserError(
        f"the data folder {folder}{origin} does not exist: give its new place as "
        "data_dir, or prepare the data there again."
    )


def repair_advice(folder: str | Path) -> str:
    """Return the next step for data that cannot be used, for messages."""
    return f"remove {folder} or give another data_dir"


_HEADINGS = ("split", "pairs read", "written", "source subwords", "target subwords")


def summary_lines(data: PreparedData) -> list[str]:
    """Return lines with the vocabulary, a row per split, and the pairs left out."""
    sizes = " and ".join(f"{size:,}" for size in _distinct_sizes(data.manifest))
    first = f"{data.manifest.problem} in {data.folder}: vocabulary of {sizes}"
    lines = [first, *_table(data.manifest)]
    for split, counts in data.manifest.splits.items():
        lines += _remarks(split, counts)
    return lines


def _distinct_sizes(manifest: Manifest) -> list[int]:
    sizes = manifest.vocab_sizes
    if manifest.tokenizers["inputs"] == manifest.tokenizers["targets"]:
        return [sizes["inputs"]]
    return [sizes["inputs"], sizes["targets"]]


def _table(manifest: Manifest) -> list[str]:
    rows: list[tuple[str, ...]] = [_HEADINGS]
    for split, counts in manifest.splits.items():
        numbers = (
            counts.pairs_read,
            counts.pairs_written,
            counts.source_subwords,
            counts.target_subwords,
        )
        rows.append((split, *(f"{number:,}" for number in numbers)))
    return aligned(rows, right=range(len(_HEADINGS)))


def _remarks(split: str, counts: SplitCounts) -> list[str]:
    remarks = [
        f"{split}: left out {count:,} pair(s): {reason.replace('_', ' ')}"
        for reason, count in counts.dropped.items()
    ]
    if counts.pairs_written != counts.pairs_kept:
        remarks.append(
            f"{split}: written {counts.pairs_written:,} copies of "
            f"{counts.pairs_kept:,} pair(s)"
        )
    if counts.also_held_out:
        remarks.append(
            f"{split}: {counts.also_held_out:,} pair(s) are also in the dev or test "
            "text; scores on that text will be too good"
        )
    return remarks
