"""Decide when further training is not worth its time."""

from __future__ import annotations

from collections.abc import Sequence


def is_exhausted(values: Sequence[float], patience: int) -> bool:
    """Return whether the last evaluations brought no higher value.

    Values that were always 0, such as BLEU of a model that has learned little, say
    nothing about progress.

    Args:
        values: A score of every evaluation so far, where higher is better.
        patience: Number of evaluations in a row that may bring no higher value than
            the highest one before them; 0 = any number.
    """
    if not patience or not any(values):
        return False
    return len(values) - 1 - values.index(max(values)) >= patience
