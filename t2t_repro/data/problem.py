"""What a problem is: where its text comes from and how it is cut into subwords.

A problem gives pairs of plain text, so everything downstream (preparation,
decoding, scoring, serving) treats the embedded, the public and the user's own data
alike. After tensor2tensor's `data_generators/text_problems.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from t2t_repro.errors import UsageError, UserError
from t2t_repro.registry import REVERSED_SUFFIX, problems, snake_case
from t2t_repro.settings.prepare_settings import PrepareSettings

if TYPE_CHECKING:
    from t2t_repro.data.text_files import PairFiles, TreeFile
    from t2t_repro.metrics.bracketing import BracketingScores
    from t2t_repro.metrics.translation import TranslationScores

SPLITS = ("train", "dev", "test")


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The vocabulary that a problem asks for.

    Attributes:
        kind: "subwords" (a SentencePiece model learnt from the training text),
            "symbols" (the given symbols, written with spaces between them), or
            "subwords_to_symbols" (subwords for the inputs, and for the targets the
            symbols that the training targets are written with).
        size: entries of the subword vocabulary, the three special ones included.
        model_type: "bpe" or "unigram", the SentencePiece algorithm.
        shared: one vocabulary for both sides, as in the paper's section 5.1.
        symbols: the symbols where `kind` is "symbols".
        source_model: a SentencePiece model file of the user's for the inputs.
        target_model: the same for the targets.
    """

    kind: str = "subwords"
    size: int = 8_000
    model_type: str = "bpe"
    shared: bool = True
    symbols: tuple[str, ...] = ()
    source_model: str | None = None
    target_model: str | None = None


@dataclasses.dataclass(frozen=True)
class Output:
    """What a user is given for a source.

    Attributes:
        text: on one line.
        repairs: what had to be repaired in what the model wrote, each thing once.
    """

    text: str
    repairs: tuple[str, ...] = ()


class Problem:
    """A task of pairs of text; subclasses are registered in `problems/`.

    A subclass gives `pairs` and, where the defaults do not suit it, the class
    attributes below. Everything is text in and text out: a problem on symbols
    writes them with spaces between them.

    Where a model is not to write the targets themselves, `encode_target` says what it
    is to write, and `postprocess` makes of what it has written what a user wants. Where
    users write otherwise than `pairs` does, `normalize_source` mends it.

    Attributes:
        vocabulary: what the text is cut into.
        splits: the splits that `pairs` knows, a subset of "train", "dev", "test".
        max_length: default of `PrepareSettings.max_length`.
        drop_duplicates: default of `PrepareSettings.drop_duplicates`.
        version: to be raised when `pairs` begins to give other text, so that shards
            prepared before are refused.
        was_reversed: whether inputs and targets are swapped when shards are read.
        file_kind: the kind of files that `with_files` accepts: "pairs", "trees", or
            "" if it has text of its own.
        metric: name of `development_score`.
        decode_defaults: values of `DecodeHParams` that suit it better than its own.
    """

    vocabulary: Vocabulary = Vocabulary()
    splits: tuple[str, ...] = SPLITS
    max_length: int = 256
    drop_duplicates: bool = False
    version: int = 1
    was_reversed: ClassVar[bool] = False
    file_kind: str = ""
    metric: str = "bleu"
    decode_defaults: Mapping[str, float | int] = MappingProxyType({})

    @property
    def name(self) -> str:
        """The name it is registered under, or would be."""
        cls = type(self)
        known = (n for n in problems.names() if problems.get(n) is cls)
        return next(known, snake_case(cls.__name__))

    @property
    def base(self) -> Problem:
        """The problem whose files these are: itself, unless it is a `_rev`."""
        return self

    @property
    def file_prefix(self) -> str:
        """What the names of its files in `data_dir` begin with."""
        return self.base.name

    @property
    def summary(self) -> str:
        """One line on the problem: the first of its docstring."""
        text = (type(self).__doc__ or "").strip()
        return text.splitlines()[0] if text else ""

    @property
    def prepare_settings(self) -> PrepareSettings:
        """The settings that hold where the user gives none."""
        vocabulary = self.vocabulary
        return PrepareSettings(
            vocab_size=vocabulary.size,
            model_type=vocabulary.model_type,
            shared_vocabulary=vocabulary.shared,
            max_length=self.max_length,
            drop_duplicates=self.drop_duplicates,
            source_model=vocabulary.source_model,
            target_model=vocabulary.target_model,
        )

    def with_files(self, files: Mapping[str, PairFiles | TreeFile]) -> Problem:
        """Return the same problem on the files of each split, of its `file_kind`.

        Raises:
            UsageError: if the problem has text of its own.
        """
        del files
        raise UsageError(
            f"received text files for problem {self.name}, which has text of its own: "
            f"leave them out or use --problem text_pairs"
        )

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        """Gives the pairs of a split, always the same ones in the same order.

        Args:
            split: one of `splits`.
            tmp_dir: folder for downloads, or None for the source's own default.

        Yields:
            (source text, target text), raw: neither tokenised nor filtered.
        """
        raise NotImplementedError

    @property
    def writes_targets(self) -> bool:
        """Whether a model writes the targets themselves."""
        return type(self).postprocess is Problem.postprocess

    def normalize_source(self, sentence: str) -> str:
        """Gives a user's sentence in the form of the sources of `pairs`: as it is."""
        return sentence

    def encode_target(self, target: str) -> str:
        """Gives what a model is taught to write for a target: the target itself."""
        return target

    def postprocess(self, source: str, written: str) -> Output:
        """Gives what a user wants of what a model has written for a source."""
        del source
        return Output(written)

    def development_score(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> float:
        """Scores finished outputs while a model is trained; more is better."""
        from t2t_repro.metrics.translation import bleu

        return bleu(hypotheses, references)

    def score(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> TranslationScores | BracketingScores:
        """Scores finished outputs in every way that is usual.

        Raises:
            UserError: if the numbers of both differ, or are zero.
        """
        from t2t_repro.metrics.translation import score_translations

        return score_translations(hypotheses, references)

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        """Says what the text is read from, so that stale shards are noticed.

        Returns:
            For each source by its role (as "train_source") facts that change when its
            content does, and that do not depend on where it lies.
        """
        del tmp_dir
        return {}

    def check(self, tmp_dir: str | Path | None) -> None:
        """Reads whatever may be wrong with the sources, before anything is written.

        Raises:
            UserError: if a source is missing or broken.
        """
        del tmp_dir


class ReversedProblem(Problem):
    """A problem with inputs and targets swapped, on the same files as its base.

    The counterpart of tensor2tensor's `_rev` names (`utils/registry.py`).
    """

    was_reversed = True

    def __init__(self, base: Problem) -> None:
        if base.was_reversed:
            raise UserError(
                f"received problem {base.name}_rev, expected at most one _rev: "
                f"leave it out"
            )
        if not base.writes_targets:
            raise UserError(
                f"received problem {base.name}_rev: {base.name} has no reverse, since "
                f"a model does not write its targets"
            )
        self._base = base
        self.vocabulary = base.vocabulary
        self.splits = base.splits
        self.max_length = base.max_length
        self.drop_duplicates = base.drop_duplicates
        self.version = base.version
        self.file_kind = base.file_kind

    @property
    def name(self) -> str:
        return f"{self._base.name}{REVERSED_SUFFIX}"

    @property
    def base(self) -> Problem:
        return self._base

    @property
    def summary(self) -> str:
        return f"{self._base.name} with inputs and targets swapped."

    @property
    def prepare_settings(self) -> PrepareSettings:
        return self._base.prepare_settings

    def with_files(self, files: Mapping[str, PairFiles | TreeFile]) -> Problem:
        return ReversedProblem(self._base.with_files(files))

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        for source, target in self._base.pairs(split, tmp_dir):
            yield target, source

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        return self._base.source_identities(tmp_dir)

    def check(self, tmp_dir: str | Path | None) -> None:
        self._base.check(tmp_dir)
