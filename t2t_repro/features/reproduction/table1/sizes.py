"""Sizes at which the layers of Table 1 are timed."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH_OF_LENGTHS = 64  # d while n grows


@dataclass(frozen=True)
class Sizes:
    """Sizes at which a layer is timed.

    The term that Table 1 names must be the largest. Therefore n is much larger than d
    while n grows and, for n^2 d, also while d grows. A pass takes at least
    milliseconds, so that the cost of starting operations is negligible.

    Attributes:
        lengths: Values of n, at d = `WIDTH_OF_LENGTHS`.
        widths: Values of d.
        length_of_widths: n while d grows.
    """

    lengths: tuple[int, ...]
    widths: tuple[int, ...]
    length_of_widths: int
