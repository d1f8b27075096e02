"""Translation between two of the user's own texts."""

from __future__ import annotations

import hashlib
import heapq
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from t2t_repro.data.encoding import has_empty_side
from t2t_repro.data.file_problem import FileProblem
from t2t_repro.data.problem import SPLITS
from t2t_repro.data.split_files import PairFiles, PairLists, read_pairs
from t2t_repro.errors import UserError

logger = logging.getLogger(__name__)

# Without development text, one in this many distinct sources of the training text is
# held out, but no more than this many.
HELD_OUT_DIVISOR = 20
MOST_HELD_OUT = 1_000
# Version 1 held out a share of all lines, including repeats and blank ones.
HOLD_OUT_RULE: Mapping[str, object] = {"version": 2}


class TextPairProblem(FileProblem[PairFiles | PairLists]):
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

    def __init__(
        self, files: Mapping[str, PairFiles | PairLists] | None = None
    ) -> None:
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
        """
        lists = {"train": PairLists(sources, targets)}
        for split, pair in (("dev", dev), ("test", test)):
            if pair is not None:
                lists[split] = PairLists(*pair)
        return cls(lists)

    def read(self, files: PairFiles | PairLists) -> Iterator[tuple[str, str]]:
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

    def check(self, tmp_dir: str | Path | None) -> None:
        super().check(tmp_dir)
        if self._holds_out():
            self._find_held_out()

    def _holds_out(self) -> bool:
        return "dev" not in self._files

    def _part_of_training(self, *, held_out: bool) -> Iterator[tuple[str, str]]:
        limit = self._find_held_out()
        for pair in read_pairs(self._files["train"]):
            # A pair with an empty side stays in the training text, where it is counted.
            is_held_out = not has_empty_side(pair) and _hash(pair[0]) <= limit
            if is_held_out == held_out:
                yield pair

    def _find_held_out(self) -> int:
        """Return the largest hash of a held-out source."""
        if self._largest_held_out is None:
            self._largest_held_out = _largest_held_out(self._files["train"])
        return self._largest_held_out


def _largest_held_out(files: PairFiles | PairLists) -> int:
    """Choose the held-out sources and return the largest of their hashes.

    Repeats, and pairs with an empty side, do not count.

    Raises:
        UserError: If there are fewer than two distinct sources.
    """
    distinct = set()
    pairs = 0
    for pair in read_pairs(files):
        pairs += 1
        if not has_empty_side(pair):
            distinct.add(_hash(pair[0]))
    if len(distinct) < 2:
        raise UserError(
            f"received {pairs:,} training pair(s) with {len(distinct)} distinct "
            "source(s), expected at least 2 to hold some out: give dev text as well"
        )
    held_out = min(MOST_HELD_OUT, max(1, len(distinct) // HELD_OUT_DIVISOR))
    logger.warning(
        "no development text given: %d of %d distinct source sentences are held out "
        "for it",
        held_out,
        len(distinct),
    )
    return heapq.nsmallest(held_out, distinct)[-1]


def _hash(source: str) -> int:
    digest = hashlib.blake2b(source.strip().encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
