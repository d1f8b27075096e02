"""The text and the settings that a user gives for a problem."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from t2t_repro.data.problem import Problem, RepeatedPair
from t2t_repro.data.text_files import read_lines
from t2t_repro.errors import UsageError, UserError, unknown_name
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.text.lines import check_same_length
from t2t_repro.text_tables import quantity

Pairs = Iterator[tuple[str, str]]


class SplitText:
    """The text of a split, in one of its forms.

    Attributes:
        kind: Kind of problem that reads it; see `Problem.file_kind`.
    """

    kind: ClassVar[str] = "pairs"

    @property
    def paths(self) -> dict[str, Path]:
        """Paths of the files by role; none by default."""
        return {}

    def facts(self) -> dict[str, dict[str, object]]:
        """Return facts about the content by role, in addition to those of the files."""
        return {}


class PairText(SplitText):
    """The pairs of a split."""

    def pairs(self) -> Pairs:
        """Yield the pairs in order.

        Raises:
            UserError: If a file is missing, empty, damaged or not UTF-8, has NUL bytes,
                or the sides do not match line by line.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class PairFiles(PairText):
    """The files of the pairs of a split.

    Attributes:
        source: File of the source lines, or of both sides with a TAB between them.
        target: File of the target lines, or None if `source` has both sides.
    """

    source: Path
    target: Path | None = None

    @property
    def paths(self) -> dict[str, Path]:
        """Paths by role: "source" and "target", or "tsv"."""
        if self.target is None:
            return {"tsv": self.source}
        return {"source": self.source, "target": self.target}

    def pairs(self) -> Pairs:
        if self.target is None:
            return _pairs_of_columns(self.source)
        return _pairs_of_lines(self.source, self.target)


@dataclass(frozen=True)
class PairCorpora(PairText):
    """The files of several corpora of pairs, which are read one after another.

    Attributes:
        files: Files of each corpus.
        copies: Number of times that the pairs of each corpus are in the shards.
    """

    files: tuple[PairFiles, ...]
    copies: tuple[int, ...]

    @property
    def paths(self) -> dict[str, Path]:
        """Paths by role and number of the corpus, such as "source_1"."""
        return {
            f"{role}_{number}": path
            for number, files in enumerate(self.files, start=1)
            for role, path in files.paths.items()
        }

    def facts(self) -> dict[str, dict[str, object]]:
        return {"copies": {"of_each_corpus": [*self.copies]}}

    def pairs(self) -> Pairs:
        for files, copies in zip(self.files, self.copies, strict=True):
            for source, target in files.pairs():
                yield RepeatedPair(source, target, copies)


@dataclass(frozen=True)
class PairLists(PairText):
    """The pairs of a split, in memory.

    Attributes:
        sources: Source sentences.
        targets: Their translations.
    """

    sources: Sequence[str]
    targets: Sequence[str]

    def facts(self) -> dict[str, dict[str, object]]:
        digest = hashlib.sha256()
        for side in (self.sources, self.targets):
            for text in side:
                digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
        return {"pairs": {"pairs": len(self.sources), "sha256": digest.hexdigest()}}

    def pairs(self) -> Pairs:
        check_same_length(self.sources, self.targets, "the sources", "the targets")
        yield from zip(self.sources, self.targets, strict=True)


@dataclass(frozen=True)
class TfdsName(SplitText):
    """The text of a data set of tensorflow-datasets.

    Attributes:
        name: Name of the data set, such as "wmt16_translate/ro-en:1.0.0".
    """

    kind: ClassVar[str] = "tfds"

    name: str


@dataclass(frozen=True)
class TreeFile(SplitText):
    """The file of the bracketed trees of a split.

    Attributes:
        trees: Path of the file.
    """

    kind: ClassVar[str] = "trees"

    trees: Path

    @property
    def paths(self) -> dict[str, Path]:
        """Path by role: "trees"."""
        return {"trees": self.trees}


def _pairs_of_lines(source: Path, target: Path) -> Pairs:
    sides = read_lines(source), read_lines(target)
    for before, lines in enumerate(itertools.zip_longest(*sides)):
        left, right = lines
        if left is None or right is None:
            counts = (
                quantity(before + (line is not None) + sum(1 for _ in rest), "line")
                for line, rest in zip(lines, sides, strict=True)
            )
            raise UserError(
                f"received {next(counts)} in {source} and {next(counts)} in {target}, "
                "expected equal numbers: line N of one translates line N of the other"
            )
        yield left, right


def _pairs_of_columns(path: Path) -> Pairs:
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise UserError(
                f"{path}:{number}: received {len(columns)} column(s), expected 2: "
                "source and target with a TAB between them"
            )
        yield columns[0], columns[1]


OWN_MODEL = ("source_model", "target_model")
LEARNED_MODEL = (
    "vocab_size",
    "model_type",
    "shared_vocabulary",
    "character_coverage",
)
SAMPLED_SUBWORDS = ("subword_copies", "subword_sampling")
_FILES = {
    "pairs": "train_source and train_target",
    "trees": "train_trees",
    "tfds": "tfds",
}


def with_files(problem: Problem, files: Mapping[str, SplitText]) -> Problem:
    """Return a problem with the user's files or, without files, the problem itself.

    Args:
        problem: The problem.
        files: Files by split.

    Raises:
        UsageError: If there is no training text, or the problem does not accept files
            of this kind.
    """
    if not files:
        return problem
    if "train" not in files:
        raise UsageError(
            f"received {' and '.join(files)} text without training text, expected "
            "train_source and train_target, train_tsv, or train_trees"
        )
    for file in files.values():
        if problem.file_kind and file.kind != problem.file_kind:
            raise UsageError(
                f"received {file.kind} for problem {problem.name}, expected "
                f"{_FILES[problem.file_kind]}"
            )
    return problem.with_files(files)


def requested_settings(problem: Problem, given: Mapping[str, Any]) -> PrepareSettings:
    """Return the settings of a problem, with the given ones replaced.

    Args:
        problem: The problem, whose defaults apply to settings that are not given.
        given: Values of `PrepareSettings` by name.

    Raises:
        UsageError: If a name is unknown, or the given settings contradict each other
            or the problem.
        UserError: If a value is refused.
    """
    known = (*PrepareSettings.names(), *OWN_MODEL)
    for name in given:
        if name not in known:
            raise unknown_name(
                "preparation setting", name, known, PrepareSettings.how_to_list
            )
    _check_vocabulary(problem, given)
    own = [name for name in OWN_MODEL if name in given]
    learned = [name for name in LEARNED_MODEL if name in given]
    if own and learned:
        raise UsageError(
            f"received {_text(own[0], given)} and {_text(learned[0], given)}, expected "
            "either your own model or settings of a model to learn"
        )
    return dataclasses.replace(problem.prepare_settings, **given)


def _check_vocabulary(problem: Problem, given: Mapping[str, Any]) -> None:
    """Refuse vocabulary settings that do not apply to the problem."""
    if problem.vocabulary.kind == "symbols":
        refused = (*OWN_MODEL, *LEARNED_MODEL, *SAMPLED_SUBWORDS)
        reason = f"whose vocabulary is its {len(problem.vocabulary.symbols)} symbols"
    elif problem.vocabulary.kind == "subwords_to_symbols":
        refused = ("target_model", "shared_vocabulary")
        reason = "whose targets are the symbols of trees"
    elif problem.vocabulary.kind == "own":
        refused = (*LEARNED_MODEL, *SAMPLED_SUBWORDS)
        reason = "which makes its vocabulary itself"
    else:
        return
    for name in refused:
        if name in given:
            raise UsageError(
                f"received {_text(name, given)} for problem {problem.name}, {reason}: "
                "leave it out"
            )


def _text(name: str, given: Mapping[str, Any]) -> str:
    return f"{name}={given[name]}"
