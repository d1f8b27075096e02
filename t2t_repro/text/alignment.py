"""Which of two sequences' elements belong together, by fewest edits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def align(written: Sequence[str], wanted: Sequence[str]) -> list[int | None]:
    """Aligns with the fewest insertions, deletions and substitutions (Levenshtein).

    Args:
        written: what is aligned.
        wanted: what it is aligned with.

    Returns:
        For each of `written` the index in `wanted` of its partner, which may be another
        element, or None if it has none. Indices ascend. Of alignments with as few edits
        the one with most partners at the end is taken.
    """
    edits = _edits(written, wanted)
    partners: list[int | None] = [None] * len(written)
    i, j = len(written), len(wanted)
    while i and j:
        if edits[i, j] == edits[i - 1, j - 1] + (written[i - 1] != wanted[j - 1]):
            i, j = i - 1, j - 1
            partners[i] = j
        elif edits[i, j] == edits[i - 1, j] + 1:
            i -= 1
        else:
            j -= 1
    return partners


def _edits(written: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """Counts the edits between prefixes, int `[len(written) + 1, len(wanted) + 1]`."""
    edits = np.add.outer(np.arange(len(written) + 1), np.arange(len(wanted) + 1))
    for i, one in enumerate(written, start=1):
        for j, other in enumerate(wanted, start=1):
            edits[i, j] = min(
                edits[i - 1, j - 1] + (one != other),
                edits[i - 1, j] + 1,
                edits[i, j - 1] + 1,
            )
    return edits
