"""Which pairs are left out of the shards, and the count of each reason."""

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
    """Gives 64 bits that stand for a pair of texts, cheap to keep by the million."""
    # No line holds a newline, so the two sides cannot run into each other.
    text = f"{source}\n{target}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def has_empty_side(pair: tuple[str, str]) -> bool:
    """Whether a side has no character but white space."""
    return not all(text.strip() for text in pair)


class PairFilter:
    """Decides on the pairs of one split, and counts what it leaves out.

    A pair is counted under the first reason that holds. What would hurt learning
    (repeats, odd length ratios) is left out of the training split alone; a side that
    cannot be learnt from, or does not fit the longest batch, is left out of every
    split's shards.

    Args:
        settings: the limits.
        is_training: whether the pairs are to be learnt from.
        held_out: digests of the pairs of the other splits.
    """

    def __init__(
        self,
        settings: PrepareSettings,
        *,
        is_training: bool,
        held_out: frozenset[int] = frozenset(),
    ) -> None:
        self._max_length = settings.max_length
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
        """Whether a pair goes into the shards.

        Args:
            pair: the two texts.
            source_ids: the source's subwords, without an end of sentence.
            target_ids: the same of the target.
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
