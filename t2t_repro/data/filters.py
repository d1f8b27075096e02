"""Filters that leave pairs out of the shards, and count them by reason."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np

from t2t_repro.data.encoding import EncodedBatch
from t2t_repro.data.manifest import SplitCounts
from t2t_repro.errors import UserError
from t2t_repro.settings.prepare_settings import PrepareSettings

EMPTY_SIDE = "empty_side"
EXACT_REPEAT = "exact_repeat"
TOO_LONG = "too_long"
LENGTH_RATIO = "length_ratio"

_RECENT_DIGESTS = 2**18


class PairFilter:
    """Filter for the pairs of a split. It counts what it keeps and what it drops.

    A pair is counted under the first reason that applies. Repeats and odd length
    ratios would hurt learning, so they are left out of the training split only. Pairs
    with an empty side or a side that is too long are left out of every split.

    Differs from tensor2tensor, which keeps repeats: they have too much weight in a
    user's text, and may also be in the test set.

    Args:
        settings: Limits of the filter.
        split: Name of the split.
        held_out: Digests of the pairs of the other splits.

    Attributes:
        dropped: Number of pairs left out, by reason.
        also_held_out: Number of pairs that are also in the other splits.
    """

    def __init__(
        self,
        settings: PrepareSettings,
        split: str,
        held_out: Collection[int] = frozenset(),
    ) -> None:
        is_training = split == "train"
        self._split = split
        self._max_length = settings.max_pair_length
        self._max_ratio = settings.max_length_ratio if is_training else 0.0
        self._drops_repeats = settings.drop_duplicates and is_training
        self._held_out = np.sort(np.fromiter(held_out, np.uint64, len(held_out)))
        self._seen = DigestSet()
        self.dropped: Counter[str] = Counter()
        self.also_held_out = 0
        self._read = 0
        self._subwords = np.zeros(2, np.int64)
        self._lengths: Counter[int] = Counter()

    def records(self, batch: EncodedBatch) -> Iterator[bytes]:
        """Return the records of the pairs that are kept, and count them.

        Args:
            batch: Pairs that follow those of the last call.
        """
        kept = self.kept(batch)
        self._read += len(kept)
        written = np.repeat(kept, batch.copies)
        lengths = batch.written_lengths[:, written]
        self._subwords += lengths.sum(axis=1)
        self._lengths.update(lengths.max(axis=0).tolist())
        return itertools.compress(batch.records, written)

    def counts(self, shards: list[str]) -> SplitCounts:
        """Return the counts of the complete split, whose files have these names.

        Raises:
            UserError: If no pair was written.
        """
        if not self._lengths:
            reasons = (f"{count:,} {why}" for why, count in self.dropped.items())
            raise UserError(
                f"no {self._split} pair is left of {self._read:,} "
                f"({', '.join(reasons) or 'none read'}): give other text or wider "
                "limits (max_pair_length, max_length_ratio)"
            )
        source_subwords, target_subwords = self._subwords.tolist()
        longest = max(self._lengths)
        return SplitCounts(
            pairs_read=self._read,
            pairs_written=self._lengths.total(),
            dropped=dict(sorted(self.dropped.items())),
            source_subwords=source_subwords,
            target_subwords=target_subwords,
            pairs_by_length=[self._lengths[length] for length in range(longest + 1)],
            also_held_out=self.also_held_out,
            shards=shards,
        )

    def kept(self, batch: EncodedBatch) -> np.ndarray:
        """Return which pairs are kept, and count the others under a reason.

        Args:
            batch: The pairs.

        Returns:
            bool `[pairs]`.
        """
        kept = ~batch.is_empty
        self._count(EMPTY_SIDE, batch.is_empty)
        self.also_held_out += int(contains(self._held_out, batch.digests[kept]).sum())
        longer = batch.lengths.max(axis=0)
        # The ratio is of subwords without the end of sentence.
        shorter = batch.lengths.min(axis=0) - 1
        for reason, fails in (
            (EXACT_REPEAT, self._repeats(batch.digests, kept)),
            (TOO_LONG, longer > self._max_length),
            (LENGTH_RATIO, (longer - 1) > self._max_ratio * shorter),
        ):
            if reason == LENGTH_RATIO and not self._max_ratio:
                continue
            self._count(reason, kept & fails)
            kept = kept & ~fails
        return kept

    def _repeats(self, digests: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        repeats = np.zeros(len(digests), bool)
        if self._drops_repeats:
            repeats[candidates] = ~self._seen.add(digests[candidates])
        return repeats

    def _count(self, reason: str, left_out: np.ndarray) -> None:
        count = int(left_out.sum())
        if count:
            self.dropped[reason] += count


def contains(ascending: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return whether each value is in an ascending array, bool `[values]`."""
    if not len(ascending):
        return np.zeros(len(values), bool)
    places = np.searchsorted(ascending, values)
    return ascending[np.minimum(places, len(ascending) - 1)] == values


class DigestSet:
    """A set of 64-bit digests that takes 8 bytes per digest.

    Most digests are in one ascending array. The latest ones are in a Python set, which
    takes ten times as much memory, until they are merged into the array.
    """

    def __init__(self) -> None:
        self._merged = np.empty(0, np.uint64)
        self._recent: set[int] = set()

    def __len__(self) -> int:
        return len(self._merged) + len(self._recent)

    def add(self, digests: np.ndarray) -> np.ndarray:
        """Add digests, and return which ones were new, bool `[digests]`.

        The first of equal digests is new and the others are not.

        Args:
            digests: uint64 `[digests]`.
        """
        is_new = ~contains(self._merged, digests)
        for index in np.flatnonzero(is_new):
            digest = int(digests[index])
            if digest in self._recent:
                is_new[index] = False
            else:
                self._recent.add(digest)
        if len(self._recent) >= _RECENT_DIGESTS:
            self._merge()
        return is_new

    def _merge(self) -> None:
        recent = np.fromiter(self._recent, np.uint64, len(self._recent))
        self._recent.clear()
        recent.sort()
        merged = np.concatenate([self._merged, recent])
        # A stable sort merges two ascending parts in linear time.
        merged.sort(kind="stable")
        self._merged = merged
