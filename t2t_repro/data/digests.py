"""Hashes of pairs, and a set of tens of millions of them in little memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

_RECENT_DIGESTS = 2**18


def pair_digest(source: str, target: str) -> int:
    """Return a 64-bit hash of a pair of texts; millions of them fit in memory."""
    return int.from_bytes(_digest(source, target), "little")


def pair_digests(pairs: Iterable[tuple[str, str]]) -> np.ndarray:
    """Return the `pair_digest` of each pair, uint64 `[pairs]`."""
    content = b"".join(_digest(source, target) for source, target in pairs)
    return np.frombuffer(content, "<u8")


def _digest(source: str, target: str) -> bytes:
    # No line contains a newline, so the boundary of the two sides is unambiguous.
    text = f"{source}\n{target}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).digest()


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
