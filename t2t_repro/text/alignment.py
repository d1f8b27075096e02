"""Which of two sequences' elements belong together, by fewest edits."""

from __future__ import annotations

from collections.abc import Sequence


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
        if edits[i][j] == edits[i - 1][j - 1] + (written[i - 1] != wanted[j - 1]):
            i, j = i - 1, j - 1
            partners[i] = j
        elif edits[i][j] == edits[i - 1][j] + 1:
            i -= 1
        else:
            j -= 1
    return partners


def _edits(written: Sequence[str], wanted: Sequence[str]) -> list[list[int]]:
    """Counts the edits between prefixes: at [i][j] of the first i and the first j."""
    edits = [[*range(len(wanted) + 1)]]
    for i, one in enumerate(written, start=1):
        above, row = edits[-1], [i]
        for j, other in enumerate(wanted, start=1):
            replaced = above[j - 1] + (one != other)
            row.append(min(replaced, above[j] + 1, row[-1] + 1))
        edits.append(row)
    return edits
