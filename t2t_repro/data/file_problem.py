"""Problems on the user's own files, and the sentences that they hold out."""

from __future__ import annotations

import array
import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar, cast

from t2t_repro.data.problem import SPLITS, Problem, counted, has_empty_side
from t2t_repro.data.request import PairLists, PairText, SplitText
from t2t_repro.data.text_files import identity
from t2t_repro.errors import UsageError, UserError

logger = logging.getLogger(__name__)


Files = TypeVar("Files", bound=SplitText)


class FileProblem(Problem, Generic[Files]):
    """A problem on the user's own files; a subclass implements `read`.

    Args:
        files: Files of "train" and, if given, of "dev" and "test".

    Attributes:
        contents: Contents of the files, such as "trees", for messages.
        training_files: Names of the training files, for messages.
    """

    contents: ClassVar[str]
    training_files: ClassVar[str]

    def __init__(self, files: Mapping[str, Files] | None = None) -> None:
        self._files: dict[str, Files] = dict(files or {})
        self._num_pairs: dict[str, int] = {}
        if self._files:
            self.splits = tuple(split for split in SPLITS if split in self._files)

    @property
    def has_text(self) -> bool:
        return bool(self._files)

    def read(self, files: Files) -> Iterator[tuple[str, str]]:
        """Yield the pairs of the files of one split.

        Raises:
            UserError: If a file is missing or broken.
        """
        raise NotImplementedError

    def with_files(self, files: Mapping[str, SplitText]) -> Self:
        return type(self)(cast("Mapping[str, Files]", files))

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        del tmp_dir
        self._require_files()
        return self.read(self._files[split])

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        del tmp_dir
        self._require_files()
        of_files = {
            f"{split}_{role}": identity(path)
            for split, files in self._files.items()
            for role, path in files.paths.items()
        }
        others = {
            f"{split}_{role}": facts
            for split, files in self._files.items()
            for role, facts in files.facts().items()
        }
        return of_files | others

    def check(self, tmp_dir: str | Path | None) -> None:
        del tmp_dir
        self._require_files()
        for split, files in self._files.items():
            self.check_split(split, counted(self.read(files), None))
            names = " and ".join(map(str, files.paths.values()))
            logger.info("%s: %s", split, names or "given in memory")

    def check_split(self, split: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Read a split to its end, which checks its text.

        Args:
            split: Name of the split.
            pairs: All pairs of its files.

        Raises:
            UserError: If the text cannot be used.
        """
        self._num_pairs[split] = sum(1 for _ in pairs)

    def num_pairs(self, split: str, tmp_dir: str | Path | None = None) -> int | None:
        del tmp_dir
        return self._num_pairs.get(split)

    def _require_files(self) -> None:
        if "train" not in self._files:
            raise UsageError(
                f"{self.name} received no training {self.contents}, expected "
                f"{self.training_files}"
            )


# Version 1 held out a share of all lines, including repeats and blank ones.
HOLD_OUT_RULE: Mapping[str, object] = {"version": 2}


class TextPairProblem(FileProblem[PairText]):
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

    def __init__(self, files: Mapping[str, PairText] | None = None) -> None:
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

    def read(self, files: PairText) -> Iterator[tuple[str, str]]:
        return files.pairs()

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        if split == "test" or not self._holds_out():
            return super().pairs(split, tmp_dir)
        self._require_files()
        return self._split_training(held_out=split == "dev")

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        own = super().source_identities(tmp_dir)
        # Data that was prepared by the rule of an earlier version is refused.
        return {**own, "held_out": HOLD_OUT_RULE} if self._holds_out() else own

    def check_split(self, split: str, pairs: Iterable[tuple[str, str]]) -> None:
        number = equal = 0

        def watched() -> Iterator[tuple[str, str]]:
            nonlocal number, equal
            for pair in pairs:
                number += 1
                equal += pair[0] == pair[1]
                yield pair

        if split == "train" and self._holds_out():
            self._largest_held_out = choose_held_out(watched())
            self._num_pairs[split] = number
        else:
            super().check_split(split, watched())
        if 0 < equal == number:
            logger.warning(
                "%s: every source is equal to its target: is one of the files the "
                "wrong one?",
                split,
            )

    def _holds_out(self) -> bool:
        return "dev" not in self._files

    def _split_training(self, *, held_out: bool) -> Iterator[tuple[str, str]]:
        files = self._files["train"]
        if self._largest_held_out is None:
            self._largest_held_out = choose_held_out(files.pairs())
        limit = self._largest_held_out
        for pair in files.pairs():
            # A pair with an empty side stays in the training text, where it is counted.
            is_held_out = not has_empty_side(pair) and source_hash(pair[0]) <= limit
            if is_held_out == held_out:
                yield pair


# Without development text, one in this many distinct sources of the training text is
# held out, but no more than this many.
HELD_OUT_DIVISOR = 20
MOST_HELD_OUT = 1_000


def choose_held_out(pairs: Iterable[tuple[str, str]]) -> int:
    """Choose the sources with the smallest hashes.

    Repeats, and pairs with an empty side, do not count. A pair takes at most 16 bytes
    of memory.

    Args:
        pairs: Pairs of the training text.

    Returns:
        The largest `source_hash` of a held-out source.

    Raises:
        UserError: If there are fewer than two distinct sources, or all pairs have a
            blank side.
    """
    # Listings of the catalogue import this module, and do not wait for NumPy.
    import numpy as np

    hashes, count = array.array("Q"), 0
    for pair in pairs:
        count += 1
        if not has_empty_side(pair):
            hashes.append(source_hash(pair[0]))
    ascending = np.frombuffer(hashes, np.uint64)
    ascending.sort()  # in place: `np.unique` takes 70 bytes per pair
    is_first = np.ones(len(ascending), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    distinct = int(np.count_nonzero(is_first))
    if count and not distinct:
        raise UserError(
            f"received {count:,} training pair(s), all with an empty or blank side, "
            "expected text on both sides"
        )
    if distinct < 2:
        raise UserError(
            f"received {count:,} training pair(s) with {distinct} distinct "
            "source(s), expected at least 2 to hold some out: give dev text as well"
        )
    held_out = min(MOST_HELD_OUT, max(1, distinct // HELD_OUT_DIVISOR))
    logger.warning(
        "no development text given: %d of %d distinct source sentences are held out "
        "for it",
        held_out,
        distinct,
    )
    place = np.searchsorted(np.cumsum(is_first, dtype=np.uint32), held_out)
    return int(ascending[place])


def source_hash(source: str) -> int:
    """Return a 64-bit hash of a source, without the spaces around it."""
    text = source.strip().encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "little")
