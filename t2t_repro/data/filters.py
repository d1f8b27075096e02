"""Filters that leave pairs out of the shards, and count them by reason."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from t2t_repro.settings.prepare_settings import PrepareSettings

EMPTY_SIDE = "empty_side"
EXACT_REPEAT = "exact_repeat"
TOO_LONG = "too_long"
LENGTH_RATIO = "length_ratio"


def pair_digest(source: str, target: str) -> int:
    """Return a 64-bit hash of a pair of texts; millions of them fit in memory."""
    # No line contains a newline, so the boundary of the two sides is unambiguous.
    text = f"{source}\n{target}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def has_empty_side(pair: tuple[str, str]) -> bool:
    """Return whether a side is empty or only white space."""
    return not all(text.strip() for text in pair)


class PairFilter:
    """Decide which pairs of a split are kept, and count the others.

    A pair is counted under the first reason that applies. Repeats and odd length
    ratios would hurt learning, so they are left out of the training split only. Pairs
    with an empty side or a side that is too long are left out of every split.

    Args:
        settings: Limits of the filter.
        is_training: Whether this is the training split.
        held_out: Digests of the pairs of the other splits.

    Attributes:
        dropped: Number of pairs left out, by reason.
        also_held_out: Number of pairs that are also in the other splits.
    """

    def __init__(
        self,
        settings: PrepareSettings,
        *,
        is_training: bool,
        held_out: frozenset[int] = frozenset(),
    ) -> None:
        self._max_length = settings.max_pair_length
        self._max_ratio = settings.max_length_ratio if is_training else 0.0
        self._drops_repeats = settings.drop_duplicates and is_training
        self._held_out = held_out
        self._seen: set[int] = set()
        self.dropped: Counter[str] = Counter()
        self.also_held_out = 0

    def keeps(
        self,
        pair: tuple[str, str],
        source_ids: Sequence[int],
        target_ids: Sequence[int],
    ) -> bool:
        """Return whether a pair is kept; count it under a reason if not.

        Args:
            pair: Source text and target text.
            source_ids: Ids of the source, without an end of sentence.
            target_ids: Ids of the target, without an end of sentence.
        """
        reason = self._reason(pair, source_ids, target_ids)
        if reason is not None:
            self.dropped[reason] += 1
        return reason is None

    def _reason(
        self,
        pair: tuple[str, str],
        source_ids: Sequence[int],
        target_ids: Sequence[int],
    ) -> str | None:
        if has_empty_side(pair) or not source_ids or not target_ids:
            return EMPTY_SIDE
        if self._is_repeat(pair):
            return EXACT_REPEAT
        shorter, longer = sorted((len(source_ids), len(target_ids)))
        if longer + 1 > self._max_length:
            return TOO_LONG
        if self._max_ratio and longer > self._max_ratio * shorter:
            return LENGTH_RATIO
        return None

    def _is_repeat(self, pair: tuple[str, str]) -> bool:
        if not self._drops_repeats and not self._held_out:
            return False
        digest = pair_digest(*pair)
        self.also_held_out += digest in self._held_out
        if not self._drops_repeats:
            return False
        if digest in self._seen:
            return True
        self._seen.add(digest)
        return False
