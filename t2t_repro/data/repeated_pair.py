"""A training pair that is in the shards several times."""

from __future__ import annotations

from typing import Self


class RepeatedPair(tuple[str, str]):
    """A pair that training reads several times per epoch.

    Attributes:
        copies: Number of copies in the shards. Copies do not count as repeats. If
            the pair is left out, so are all its copies.
    """

    copies: int

    def __new__(cls, source: str, target: str, copies: int) -> Self:
        pair = super().__new__(cls, (source, target))
        pair.copies = copies
        return pair


def copies_of(pair: tuple[str, str]) -> int:
    """Return how many copies of a training pair the shards have."""
    return pair.copies if isinstance(pair, RepeatedPair) else 1
