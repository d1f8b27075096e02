"""Alignment of two sequences with the fewest edits."""

from __future__ import annotations

from collections.abc import Sequence


def align(written: Sequence[str], wanted: Sequence[str]) -> list[int | None]:
    """Align with the fewest insertions, deletions and substitutions (Levenshtein).

    Ties between alignments are broken element by element, beginning with the last one
    of `written`. Its partner is the first possible of these: the last element of
    `wanted` before the partners already chosen; no partner; an earlier element, the
    nearest first.

    Args:
        written: The sequence to align.
        wanted: The sequence to align it with.

    Returns:
        For each element of `written` the index in `wanted` of its partner, which may be
        a different element, or None if it has no partner. Indices ascend.
    """
    edits = _edits(written, wanted)
    partners: list[int | None] = [None] * len(written)
    i, j = len(written), len(wanted)
    while i and j:
        if edits[i][j] == edits[i - 1][j - 1] + (written[i - 1] != wanted[j - 1]):
            i, j = i - 1, j - 1
            partners[i] = j
        elif edits[i][j] == edits[i - 1][j] + 1:
            i -= 1
        else:
            j -= 1
    return partners


def _edits(written: Sequence[str], wanted: Sequence[str]) -> list[list[int]]:
    """Return the edit distances of prefixes: [i][j] of the first i and first j."""
    edits = [[*range(len(wanted) + 1)]]
    for i, one in enumerate(written, start=1):
        above, row = edits[-1], [i]
        for j, other in enumerate(wanted, start=1):
            replaced = above[j - 1] + (one != other)
            row.append(min(replaced, above[j] + 1, row[-1] + 1))
        edits.append(row)
    return edits
