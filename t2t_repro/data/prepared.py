"""A problem's prepared data: its tokenizers, shards and raw text."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from t2t_repro import features
from t2t_repro.data.manifest import (
    Manifest,
    missing_data_folder,
    raw_text_names,
    repair_advice,
)
from t2t_repro.data.pipeline import Shards
from t2t_repro.data.problem import Problem
from t2t_repro.data.request import OWN_MODEL
from t2t_repro.data.text_files import identity, read_lines
from t2t_repro.errors import UserError
from t2t_repro.files import differences, path_inside
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text import Tokenizer
from t2t_repro.text.tokenizer_files import load_tokenizers

_Side = TypeVar("_Side")


@dataclasses.dataclass(frozen=True)
class PreparedData:
    """A problem and a folder that holds its data.

    This class swaps the sides of a `_rev` problem, which shares the files of its base.

    Attributes:
        problem: The problem.
        folder: Folder of the data.
        manifest: Description of the data.
    """

    problem: Problem
    folder: Path
    manifest: Manifest

    @classmethod
    def find(cls, folder: str | Path, problem: Problem) -> Self | None:
        """Return the prepared data in a folder, or None if there is none.

        Raises:
            UserError: If the manifest is damaged or has another format.
        """
        manifest = Manifest.load(folder, problem)
        return None if manifest is None else cls(problem, Path(folder), manifest)

    @classmethod
    def find_or_adopt(cls, folder: str | Path, problem: Problem) -> PreparedData | None:
        """Return the prepared data in a folder, which another program may have made.

        Raises:
            UserError: If the data or its manifest cannot be used.
        """
        found = cls.find(folder, problem)
        modules = features.modules("prepared_data").values() if found is None else ()
        adopted = (module.adopt(problem, folder) for module in modules)
        return next(filter(None, adopted), found)

    @classmethod
    def load(cls, folder: str | Path, problem: Problem) -> PreparedData:
        """Return the prepared data in a folder.

        Raises:
            UserError: If the problem is not prepared there, or the manifest is damaged
                or has another format.
        """
        found = cls.find_or_adopt(folder, problem)
        if found is None and not Path(folder).exists():
            raise missing_data_folder(folder)
        if found is None:
            raise UserError(
                f"received data folder {folder}, expected prepared data of "
                f"{problem.file_prefix} in it: prepare it, as `t2t datagen --problem "
                f"{problem.file_prefix} --data_dir {folder}` does"
            )
        return found

    @property
    def splits(self) -> tuple[str, ...]:
        """The prepared splits, in the order train, dev, test."""
        return tuple(self.manifest.splits)

    @property
    def is_adopted(self) -> bool:
        """Whether another program prepared the data."""
        return not self.manifest.settings

    @property
    def digest(self) -> str:
        """The sha256 of the names and contents of all files."""
        return self.manifest.digest

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Read the tokenizers of the problem's inputs and targets.

        Returns:
            The two tokenizers; one object twice if the vocabulary is shared.

        Raises:
            UserError: If a file is missing or damaged.
        """
        return self._swap_if_reversed(
            load_tokenizers(self.folder, self.manifest.tokenizers)
        )

    def shards(self, split: str) -> Shards:
        """Return the TFRecord files of a split, after checking all files' sizes.

        Raises:
            UserError: If the split is not prepared, or a file is missing or cut short.
        """
        self._check_split(split, self.splits)
        self.check_files(checksums=False)
        names = self.manifest.splits[split].shards
        paths = tuple(str(path_inside(self.folder, name)) for name in names)
        return Shards(paths, swap_sides=self.problem.was_reversed)

    def raw_text(self, split: str) -> tuple[list[str], list[str]]:
        """Read the text of a split's inputs and targets, for scoring.

        It has all pairs of the problem, neither filtered nor tokenized.

        Args:
            split: "dev" or "test".

        Returns:
            The lines of the sources and the lines of the references.

        Raises:
            UserError: If the split is not prepared or has no raw text, or a file cannot
                be read.
        """
        self._check_split(split, [name for name in self.splits if name != "train"])
        names = raw_text_names(self.manifest.problem, split)
        source, target = (
            list(read_lines(path_inside(self.folder, name))) for name in names
        )
        return self._swap_if_reversed((source, target))

    def check_files(self, *, checksums: bool) -> None:
        """Check that all files are there, complete and, if asked, unchanged.

        Args:
            checksums: Whether to read the files and compare their checksums.

        Raises:
            UserError: If a file is missing, incomplete or changed; the message names
                the first one.
        """
        for name, expected in self.manifest.files.items():
            path = path_inside(self.folder, name)
            trouble = _fault(path, expected, checksums)
            if trouble is not None:
                raise UserError(
                    f"{path} {trouble}: {repair_advice(self.folder)} to "
                    "prepare it again"
                )

    def _check_split(self, split: str, known: Sequence[str]) -> None:
        if split not in known:
            raise UserError(
                f"received split {split!r}, expected one of "
                f"{', '.join(known) or 'none'}: the data in {self.folder} has no other"
            )

    def _swap_if_reversed(self, sides: tuple[_Side, _Side]) -> tuple[_Side, _Side]:
        first, second = sides
        return (second, first) if self.problem.was_reversed else sides


def _fault(path: Path, expected: dict[str, Any], checksums: bool) -> str | None:
    """Return a phrase for the fault of a file, or None."""
    if not path.is_file():
        return "is missing"
    found = identity(path) if checksums else {"bytes": path.stat().st_size}
    if found["bytes"] != expected["bytes"]:
        return f"has {found['bytes']:,} bytes, expected {expected['bytes']:,}"
    if checksums and found["sha256"] != expected["sha256"]:
        return "has changed since it was written"
    return None


Sources = dict[str, dict[str, Any]]


def sources_of(
    problem: Problem, settings: PrepareSettings, tmp_dir: str | Path | None
) -> Sources:
    """Return the identity of each source of the data, by role.

    Raises:
        UserError: If a file cannot be read.
    """
    identities = problem.source_identities(tmp_dir)
    text = {role: dict(facts) for role, facts in identities.items()}
    return {**text, **_model_identities(settings)}


def _model_identities(settings: PrepareSettings) -> Sources:
    """Return the identities of the user's own models, whose content is compared."""
    paths = {role: getattr(settings, role) for role in OWN_MODEL}
    return {
        role: identity(Path(path)) for role, path in paths.items() if path is not None
    }


def check_given(
    data: PreparedData,
    settings: PrepareSettings,
    given: Collection[str],
    tmp_dir: str | Path | None,
) -> None:
    """Refuse data that differs from given settings, models or text.

    Args:
        data: The data.
        settings: Settings that include the given ones.
        given: Names of the given settings. The others may differ.
        tmp_dir: Folder for downloads, or None for the source's own default.

    Raises:
        UserError: If the data differs; the message names every difference.
    """
    problem = data.problem.base
    if data.is_adopted:
        _check_nothing_given(data, given)
        return
    if problem.has_text:
        sources = sources_of(problem, settings, tmp_dir)
        kept = OWN_MODEL
    else:
        sources = _model_identities(settings)
        kept = tuple(data.manifest.sources)
    recorded = {
        role: facts for role, facts in data.manifest.sources.items() if role in kept
    }
    names = [name for name in settings.names() if name in given]
    check_agrees(data, settings, names, {**recorded, **sources})


def _check_nothing_given(data: PreparedData, given: Collection[str]) -> None:
    """Refuse settings or files for data that another program prepared.

    Raises:
        UserError: If there are any.
    """
    files = ["files"] if data.problem.has_text and data.problem.file_kind else []
    if asked := [*given, *files]:
        (program,) = data.manifest.sources
        raise UserError(
            f"received {', '.join(asked)} for the data in {data.folder}, which "
            f"{program} prepared: leave them out, or give another data_dir."
        )


def check_agrees(
    data: PreparedData,
    settings: PrepareSettings,
    names: Collection[str],
    sources: Sources,
) -> None:
    """Refuse data that differs from the request.

    Args:
        data: The data.
        settings: The requested settings.
        names: Names of the settings to compare.
        sources: All sources of the requested data.

    Raises:
        UserError: If the data differs; the message names every difference.
    """
    manifest = data.manifest
    there = {name: PrepareSettings.value_in(manifest.settings, name) for name in names}
    now = {name: getattr(settings, name) for name in names}
    there["the problem's version"] = manifest.problem_version
    now["the problem's version"] = data.problem.base.version
    found = differences(there, now)
    found += _source_differences(manifest.sources, sources)
    if found:
        advice = repair_advice(data.folder)
        raise UserError(
            f"{data.folder} holds {manifest.problem} prepared otherwise: "
            f"{'; '.join(found)}.\n{advice[0].upper()}{advice[1:]}"
        )


def _source_differences(
    there: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    found = []
    for role in sorted({*there, *now}):
        if role not in now:
            found.append(f"{role} was given there")
        elif role not in there:
            found.append(f"{role} was not given there")
        elif dict(there[role]) != dict(now[role]):
            found.append(f"{role} has other content")
    return found
