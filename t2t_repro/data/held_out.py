"""Choose the sources of a training text to hold out as development text."""

from __future__ import annotations

import array
import hashlib
import logging
from collections.abc import Iterable
from typing import NamedTuple

from t2t_repro.data.pairs import has_empty_side
from t2t_repro.errors import UserError

logger = logging.getLogger(__name__)

# Without development text, one in this many distinct sources of the training text is
# held out, but no more than this many.
HELD_OUT_DIVISOR = 20
MOST_HELD_OUT = 1_000


class HeldOut(NamedTuple):
    """The choice of the held-out sources.

    Attributes:
        largest: Largest hash of a held-out source.
        pairs: Number of pairs of the text.
    """

    largest: int
    pairs: int


def choose_held_out(pairs: Iterable[tuple[str, str]]) -> HeldOut:
    """Choose the sources with the smallest hashes.

    Repeats, and pairs with an empty side, do not count. A pair takes at most 16 bytes
    of memory.

    Args:
        pairs: Pairs of the training text.

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
    return HeldOut(int(ascending[place]), count)


def source_hash(source: str) -> int:
    """Return a 64-bit hash of a source, without the spaces around it."""
    text = source.strip().encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "little")
