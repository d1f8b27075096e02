"""The `_rev` problems, which read the files of another problem the other way round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.registry import REVERSED_SUFFIX
from t2t_repro.settings.prepare_settings import PrepareSettings

if TYPE_CHECKING:
    from t2t_repro.data.request import SplitText
    from t2t_repro.translation_scores import Scores


class ReversedProblem(Problem):
    """A problem with inputs and targets swapped, on the same files as its base.

    The counterpart of tensor2tensor's `_rev` names (`utils/registry.py`).
    """

    was_reversed = True

    def __init__(self, base: Problem) -> None:
        if base.was_reversed:
            raise UserError(
                f"received problem {base.name}_rev, expected at most one _rev: leave "
                "one out"
            )
        if not base.writes_targets:
            raise UserError(
                f"received problem {base.name}_rev: {base.name} has no reverse, "
                "because the model does not write its targets"
            )
        self._base = base
        self.vocabulary = base.vocabulary
        self.splits = base.splits
        self.max_length = base.max_length
        self.drop_duplicates = base.drop_duplicates
        self.version = base.version
        self.file_kind = base.file_kind
        self.metric = base.metric
        self.source_language = base.target_language
        self.target_language = base.source_language
        self.decode_defaults = base.decode_defaults

    @property
    def name(self) -> str:
        return f"{self._base.name}{REVERSED_SUFFIX}"

    @property
    def base(self) -> Problem:
        return self._base

    @property
    def has_text(self) -> bool:
        return self._base.has_text

    @property
    def prepare_settings(self) -> PrepareSettings:
        return self._base.prepare_settings

    def with_files(self, files: Mapping[str, SplitText]) -> Problem:
        return ReversedProblem(self._base.with_files(files))

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        for source, target in self._base.pairs(split, tmp_dir):
            yield target, source

    def num_pairs(self, split: str, tmp_dir: str | Path | None) -> int | None:
        return self._base.num_pairs(split, tmp_dir)

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        return self._base.source_identities(tmp_dir)

    def check(self, tmp_dir: str | Path | None) -> None:
        self._base.check(tmp_dir)

    @property
    def scores_bleu(self) -> bool:
        return self._base.scores_bleu

    def _scorer(self, texts: Sequence[str]) -> Problem:
        """Return the base, which scores, with the tokenizer of this side."""
        return self._base.with_bleu_tokenizer(self.tokenizer_for(texts))

    def development_score(
        self, hypotheses: Sequence[str], references: Sequence[str]
    ) -> float:
        return self._scorer(references).development_score(hypotheses, references)

    def score(self, hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
        return self._scorer(references).score(hypotheses, references)

    def similarities(self, outputs: Sequence[str]) -> list[list[float]]:
        return self._scorer(outputs).similarities(outputs)
