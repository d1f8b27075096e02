"""Translation between two of the user's own texts."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from t2t_repro.data.file_problem import FileProblem
from t2t_repro.data.held_out import choose_held_out, source_hash
from t2t_repro.data.pairs import has_empty_side
from t2t_repro.data.problem import SPLITS
from t2t_repro.data.split_files import (
    PairCorpora,
    PairFiles,
    PairLists,
    read_pairs,
)
from t2t_repro.data.text_files import count_lines
from t2t_repro.errors import UserError

logger = logging.getLogger(__name__)

# Version 1 held out a share of all lines, including repeats and blank ones.
HOLD_OUT_RULE: Mapping[str, object] = {"version": 2}

TextPairs = PairFiles | PairCorpora | PairLists


class TextPairProblem(FileProblem[TextPairs]):
    """Pairs of lines from two files per split, or from one TSV.

    Without development text, the sources with the smallest hashes are held out of the
    training text, with all their pairs. The choice does not depend on the order of the
    lines, and the model never trains on a held-out source.

    Args:
        files: Files or lists of "train" and, if given, of "dev" and "test".
    """

    drop_duplicates = True
    file_kind = "pairs"
    contents = "text"
    training_files = "train_source and train_target, or train_tsv"

    def __init__(self, files: Mapping[str, TextPairs] | None = None) -> None:
        super().__init__(files)
        self._largest_held_out: int | None = None
        self.splits = tuple(
            split for split in SPLITS if split != "test" or split in self._files
        )

    @classmethod
    def from_lists(
        cls,
        sources: Sequence[str],
        targets: Sequence[str],
        dev: tuple[Sequence[str], Sequence[str]] | None = None,
        test: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> Self:
        """Return the problem with sentences in memory.

        Args:
            sources: Source sentences to train on.
            targets: Their translations.
            dev: Sources and targets to evaluate on during training; by default some
                of the training sentences are held out.
            test: Sources and targets of a test split.

        Raises:
            UserError: If `dev` or `test` is not a pair.
        """
        lists = {"train": PairLists(sources, targets)}
        for split, pair in (("dev", dev), ("test", test)):
            if pair is None:
                continue
            if len(pair) != 2:
                raise UserError(
                    f"received {split} with {len(pair)} list(s), expected two: the "
                    "sources and their targets."
                )
            lists[split] = PairLists(*pair)
        return cls(lists)

    def read(self, files: TextPairs) -> Iterator[tuple[str, str]]:
        return read_pairs(files)

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        if split == "test" or not self._holds_out():
            return super().pairs(split, tmp_dir)
        self._require_files()
        return self._part_of_training(held_out=split == "dev")

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        own = super().source_identities(tmp_dir)
        # Data that was prepared by the rule of an earlier version is refused.
        return {**own, "held_out": HOLD_OUT_RULE} if self._holds_out() else own

    def check_split(self, split: str, pairs: Iterable[tuple[str, str]]) -> None:
        watched = _Watched(pairs)
        if split == "train" and self._holds_out():
            choice = choose_held_out(watched)
            self._largest_held_out = choice.largest
            self._num_pairs[split] = choice.pairs
        else:
            super().check_split(split, watched)
        if watched.all_equal:
            logger.warning(
                "%s: every source is equal to its target: is one of the files the "
                "wrong one?",
                split,
            )

    def num_pairs(self, split: str, tmp_dir: str | Path | None = None) -> int | None:
        known = super().num_pairs(split, tmp_dir)
        return _count(self._files.get(split)) if known is None else known

    def _holds_out(self) -> bool:
        return "dev" not in self._files

    def _part_of_training(self, *, held_out: bool) -> Iterator[tuple[str, str]]:
        limit = self._find_held_out()
        for pair in read_pairs(self._files["train"]):
            # A pair with an empty side stays in the training text, where it is counted.
            is_held_out = not has_empty_side(pair) and source_hash(pair[0]) <= limit
            if is_held_out == held_out:
                yield pair

    def _find_held_out(self) -> int:
        """Return the largest hash of a held-out source."""
        if self._largest_held_out is None:
            choice = choose_held_out(read_pairs(self._files["train"]))
            self._largest_held_out = choice.largest
        return self._largest_held_out


class _Watched:
    """Pairs of which it is known, after they are read, whether all have equal sides."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._pairs = pairs
        self.all_equal = False

    def __iter__(self) -> Iterator[tuple[str, str]]:
        number = equal = 0
        for pair in self._pairs:
            number += 1
            equal += pair[0] == pair[1]
            yield pair
        self.all_equal = 0 < number == equal


def _count(files: TextPairs | None) -> int | None:
    """Return the number of lines of the sources."""
    if isinstance(files, PairCorpora):
        return sum(count_lines(corpus.source) for corpus in files.files)
    if isinstance(files, PairFiles):
        return count_lines(files.source)
    return None if files is None else len(files.sources)
