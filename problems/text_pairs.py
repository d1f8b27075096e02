"""Translation between two texts of the user's own."""

from __future__ import annotations

import hashlib
import heapq
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from t2t_repro.data.filters import has_empty_side
from t2t_repro.data.problem import SPLITS, Problem
from t2t_repro.data.text_files import (
    PairFiles,
    TreeFile,
    has_byte_order_mark,
    identities,
    read_pairs,
)
from t2t_repro.errors import UsageError, UserError
from t2t_repro.registry import register_problem

logger = logging.getLogger(__name__)

# Without development text, this many distinct sources are held out of the training
# text, but no more than one in twenty.
MOST_HELD_OUT = 1_000
HELD_OUT_DIVISOR = 20


@register_problem
class TextPairs(Problem):
    """Your own text: two files a split, line by line, or one TSV.

    Where no development text is given, the pairs of the sources with the smallest
    hashes are held out of the training text: the same ones whatever the order of the
    lines, and never a source that is also trained on.

    Args:
        files: the files of "train" and, where there are such, "dev" and "test".
    """

    drop_duplicates = True
    file_kind = "pairs"

    def __init__(self, files: Mapping[str, PairFiles] | None = None) -> None:
        self._files = dict(files or {})
        self._largest_held_out: int | None = None
        self.splits = tuple(
            split for split in SPLITS if split != "test" or split in self._files
        )

    @property
    def has_text(self) -> bool:
        return bool(self._files)

    def with_files(self, files: Mapping[str, PairFiles | TreeFile]) -> TextPairs:
        return TextPairs(cast("Mapping[str, PairFiles]", files))

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        del tmp_dir
        self._require_files()
        if split in self._files and not (split == "train" and self._holds_out()):
            return read_pairs(self._files[split])
        return self._part_of_training(held_out=split == "dev")

    def source_identities(
        self, tmp_dir: str | Path | None
    ) -> Mapping[str, Mapping[str, object]]:
        del tmp_dir
        self._require_files()
        return identities(self._files)

    def check(self, tmp_dir: str | Path | None) -> None:
        del tmp_dir
        self._require_files()
        for split, files in self._files.items():
            for _ in read_pairs(files):
                pass
            for path in set(files.paths.values()):
                if has_byte_order_mark(path):
                    logger.warning("%s: its byte-order mark is left out", path)
            logger.info("%s: %s", split, " and ".join(map(str, files.paths.values())))
        if self._holds_out():
            self._find_held_out()

    def _require_files(self) -> None:
        if "train" not in self._files:
            raise UsageError(
                "text_pairs received no training text, expected --train_source and "
                "--train_target, or --train_tsv"
            )

    def _holds_out(self) -> bool:
        return "dev" not in self._files

    def _part_of_training(self, *, held_out: bool) -> Iterator[tuple[str, str]]:
        limit = self._find_held_out()
        for source, target in read_pairs(self._files["train"]):
            # A pair with an empty side stays with the training text, to be counted.
            whole = not has_empty_side((source, target))
            if (whole and _hash(source) <= limit) == held_out:
                yield source, target

    def _find_held_out(self) -> int:
        """Gives the largest hash of a source that is held out."""
        if self._largest_held_out is None:
            self._largest_held_out = _largest_held_out(self._files["train"])
        return self._largest_held_out


def _largest_held_out(files: PairFiles) -> int:
    smallest: list[int] = []
    members: set[int] = set()
    count = 0
    for source, target in read_pairs(files):
        count += 1
        digest = _hash(source)
        if digest in members or has_empty_side((source, target)):
            continue
        # heapq keeps the smallest item first: negated, that is the largest hash.
        members.add(digest)
        heapq.heappush(smallest, -digest)
        if len(smallest) > MOST_HELD_OUT + 1:
            members.remove(-heapq.heappop(smallest))
    if len(smallest) < 2:
        raise UserError(
            f"received {count:,} training pair(s) with {len(smallest)} distinct "
            f"source(s), expected at least 2 to hold some out: give --dev_source and "
            f"--dev_target"
        )
    kept = min(MOST_HELD_OUT, len(smallest) - 1, max(1, count // HELD_OUT_DIVISOR))
    logger.warning(
        "no development text given: %d distinct source(s) of %d training pairs are "
        "held out for it",
        kept,
        count,
    )
    return sorted(-digest for digest in smallest)[kept - 1]


def _hash(source: str) -> int:
    digest = hashlib.blake2b(source.strip().encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
