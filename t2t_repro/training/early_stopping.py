"""Decide when further training is not worth its time."""

from __future__ import annotations

from collections.abc import Sequence


def is_exhausted(values: Sequence[float], patience: int) -> bool:
    """Return whether the last evaluations brought no higher value.

    Args:
        values: A score of every evaluation so far, where higher is better.
        patience: Number of evaluations in a row that may bring no higher value than
            the highest one before them; 0 = any number.
    """
    if not patience or not values:
        return False
    return len(values) - 1 - values.index(max(values)) >= patience
