"""What stands in a data folder: counts, settings, sources and checksums.

`<problem>.manifest.json` is written last, so a folder without it holds nothing that
may be used; and it names every file, so stale ones beside them are never read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_repro.data.problem import Problem
from t2t_repro.data.text_files import identity
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer, load_tokenizer

FORMAT = 2

# The user's own models count by their content, among the sources.
MODEL_ROLES = ("source_model", "target_model")


@dataclasses.dataclass(frozen=True)
class SplitCounts:
    """What became of the pairs of a split.

    Attributes:
        pairs_read: pairs that the problem gave.
        pairs_written: pairs in the shards.
        dropped: pairs left out of the shards, by reason.
        source_subwords: ids of all inputs in the shards, end of sentence included.
        target_subwords: the same of the targets.
        pairs_by_length: how many pairs in the shards have 0, 1, 2, ... subwords on
            their longer side, end of sentence included.
        also_held_out: training pairs that stand in the dev or test text as well.
        shards: names of the TFRecord files.
    """

    pairs_read: int
    pairs_written: int
    dropped: dict[str, int]
    source_subwords: int
    target_subwords: int
    pairs_by_length: list[int]
    also_held_out: int
    shards: list[str]

    def longer_than(self, length: int) -> int:
        """Gives the number of pairs in the shards whose longer side is longer."""
        return sum(self.pairs_by_length[length + 1 :])


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The content of a problem's manifest file.

    Attributes:
        problem: name of the problem, never a `_rev`.
        problem_version: its `Problem.version`.
        settings: how the text was prepared, the user's own models left out.
        sources: `Problem.source_identities`, and those of the user's own models.
        splits: the counts of each split, in the order train, dev, test.
        tokenizers: file names of the tokenizers of "inputs" and "targets".
        vocab_sizes: their sizes.
        files: bytes and sha256 of every file by its name.
        versions: of the software that prepared the data.
        format: version of this file's form.
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

    @staticmethod
    def path(data_dir: str | Path, problem: Problem) -> Path:
        """Where a problem's manifest stands."""
        return Path(data_dir) / f"{problem.file_prefix}.manifest.json"

    @classmethod
    def load(cls, data_dir: str | Path, problem: Problem) -> Manifest | None:
        """Reads a problem's manifest, or gives None where there is none.

        Raises:
            UserError: if it is damaged or of another version of this software.
        """
        path = cls.path(data_dir, problem)
        if not path.exists():
            return None
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if values["format"] != FORMAT:
                raise UserError(
                    f"received {path} of format {values['format']}, expected {FORMAT}: "
                    f"another version prepared it; {_way_out(data_dir)}"
                )
            splits = {
                name: SplitCounts(**counts)
                for name, counts in values.pop("splits").items()
            }
            return cls(splits=splits, **values)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"received a damaged manifest {path}: {_way_out(data_dir)}"
            ) from error

    @classmethod
    def load_existing(cls, data_dir: str | Path, problem: Problem) -> Manifest:
        """Reads a problem's manifest.

        Raises:
            UserError: if there is none, or it is damaged.
        """
        manifest = cls.load(data_dir, problem)
        if manifest is None:
            raise UserError(
                f"received data folder {data_dir}, expected prepared data of "
                f"{problem.file_prefix} in it: run `t2t datagen --problem "
                f"{problem.file_prefix} --data_dir {data_dir}`"
            )
        return manifest

    def digest(self) -> str:
        """Gives a sha256 that stands for the content of all files."""
        contents = sorted((name, facts["sha256"]) for name, facts in self.files.items())
        return hashlib.sha256(json.dumps(contents).encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Writes the manifest, whole or not at all."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        atomic_write(path, text + "\n")


def recorded_settings(settings: PrepareSettings) -> dict[str, Any]:
    """Gives the settings as the manifest holds them: without paths."""
    values = dataclasses.asdict(settings)
    return {key: value for key, value in values.items() if key not in MODEL_ROLES}


def recorded_sources(
    problem: Problem, settings: PrepareSettings, tmp_dir: str | Path | None
) -> dict[str, dict[str, Any]]:
    """Gives what the data is made from: text, and the user's own models."""
    text = {
        role: dict(facts) for role, facts in problem.source_identities(tmp_dir).items()
    }
    return {**text, **model_identities(settings)}


def model_identities(settings: PrepareSettings) -> dict[str, dict[str, Any]]:
    """Gives what the user's own models are, by their role."""
    paths = {role: getattr(settings, role) for role in MODEL_ROLES}
    return {
        role: identity(Path(path)) for role, path in paths.items() if path is not None
    }


def check_settings(
    manifest: Manifest,
    data_dir: str | Path,
    *,
    problem_version: int,
    settings: Mapping[str, Any],
    sources: Mapping[str, Mapping[str, Any]] | None,
) -> None:
    """Refuses data that was prepared in another way than is now asked for.

    Args:
        manifest: what stands in the folder.
        data_dir: the folder.
        problem_version: the problem's version now.
        settings: the settings that must agree; others may differ.
        sources: what the data is to be made from, or None not to compare it.

    Raises:
        UserError: naming every difference.
    """
    differences = [
        f"{name} is {manifest.settings.get(name)!r} there, {value!r} now"
        for name, value in settings.items()
        if manifest.settings.get(name) != value
    ]
    if manifest.problem_version != problem_version:
        differences.append(
            f"the problem's version is {manifest.problem_version} there, "
            f"{problem_version} now"
        )
    if sources is not None:
        differences += _source_differences(manifest.sources, sources)
    if differences:
        raise UserError(
            f"{data_dir} holds {manifest.problem} prepared otherwise: "
            f"{'; '.join(differences)}.\n{_way_out(data_dir).capitalize()}"
        )


def _source_differences(
    there: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    differences = []
    for role in sorted({*there, *now}):
        if role not in now:
            differences.append(f"{role} was given there")
        elif role not in there:
            differences.append(f"{role} was not given there")
        elif dict(there[role]) != dict(now[role]):
            differences.append(f"{role} has other content")
    return differences


def _way_out(data_dir: str | Path) -> str:
    return f"remove {data_dir} or give another --data_dir"


def check_files(manifest: Manifest, data_dir: str | Path, *, checksums: bool) -> None:
    """Checks that the files are there, whole and, if asked, unchanged.

    Raises:
        UserError: naming the first file that is not.
    """
    for name, expected in manifest.files.items():
        path = Path(data_dir) / name
        found: dict[str, Any] | None = None
        if path.is_file():
            found = identity(path) if checksums else {"bytes": path.stat().st_size}
        if found is None:
            trouble = "is missing"
        elif found["bytes"] != expected["bytes"]:
            trouble = f"has {found['bytes']:,} bytes, expected {expected['bytes']:,}"
        elif checksums and found["sha256"] != expected["sha256"]:
            trouble = "has other content than was written"
        else:
            continue
        raise UserError(f"{path} {trouble}: {_way_out(data_dir)} to prepare it again")


def load_tokenizers(
    data_dir: str | Path, problem: Problem
) -> tuple[Tokenizer, Tokenizer]:
    """Reads the tokenizers of a problem's inputs and targets; swapped for a `_rev`.

    Raises:
        UserError: if the data is not prepared, or a file is missing or damaged.
    """
    names = Manifest.load_existing(data_dir, problem).tokenizers
    source = load_tokenizer(Path(data_dir) / names["inputs"])
    shared = names["inputs"] == names["targets"]
    target = source if shared else load_tokenizer(Path(data_dir) / names["targets"])
    return (target, source) if problem.was_reversed else (source, target)


def shards(data_dir: str | Path, problem: Problem, split: str) -> list[str]:
    """Gives the paths of a split's TFRecord files.

    Raises:
        UserError: if the split is not prepared or a file is missing or cut short.
    """
    manifest = _with_split(data_dir, problem, split)
    check_files(manifest, data_dir, checksums=False)
    return [str(Path(data_dir) / name) for name in manifest.splits[split].shards]


def raw_text(data_dir: str | Path, problem: Problem, split: str) -> tuple[Path, Path]:
    """Gives the text files of a split's inputs and targets; swapped for a `_rev`.

    They hold every pair that was read, unfiltered and not tokenised, for scoring.

    Args:
        data_dir: the folder of prepared data.
        problem: the problem.
        split: "dev" or "test".

    Raises:
        UserError: if the split is not prepared.
    """
    manifest = _with_split(data_dir, problem, split, but_not=("train",))
    source, target = (
        Path(data_dir) / name for name in raw_text_names(manifest.problem, split)
    )
    return (target, source) if problem.was_reversed else (source, target)


def raw_text_names(prefix: str, split: str) -> tuple[str, str]:
    """Gives the names of the text files of a split's two sides."""
    return f"{prefix}-{split}.inputs.txt", f"{prefix}-{split}.targets.txt"


def _with_split(
    data_dir: str | Path, problem: Problem, split: str, but_not: Sequence[str] = ()
) -> Manifest:
    manifest = Manifest.load_existing(data_dir, problem)
    names = [name for name in manifest.splits if name not in but_not]
    if split not in names:
        raise UserError(
            f"received split {split!r}, expected one of {', '.join(names) or 'none'}: "
            f"the data in {data_dir} has no other"
        )
    return manifest
