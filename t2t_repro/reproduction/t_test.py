"""Student's t-test of two groups, with a deviation estimated from more groups."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def t_test(
    first: Sequence[float], second: Sequence[float], deviation: float, degrees: int
) -> float:
    """Return the two-sided p-value of the difference between two means.

    With two seeds per system, a permutation test cannot give a small p-value. If the
    noise of all systems is the same, all of them tell how large it is.

    Args:
        first: Scores of one system, one per seed.
        second: Scores of the other; their number may differ.
        deviation: Standard deviation between seeds of the same system.
        degrees: Degrees of freedom of the deviation.
    """
    error = deviation * math.sqrt(1 / len(first) + 1 / len(second))
    difference = statistics.mean(first) - statistics.mean(second)
    return two_sided_p(difference / error, degrees)


def two_sided_p(t: float, degrees: int) -> float:
    """Return the probability that |T| of Student's distribution is at least |t|.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.

    Args:
        t: Value of the statistic.
        degrees: Degrees of freedom, at least 1.
    """
    angle = math.atan(abs(t) / math.sqrt(degrees))
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for power in range(1 + odd, degrees, 2):
        total += term
        term *= math.cos(angle) ** 2 * power / (power + 1)
    within = math.sin(angle) * total
    return 1 - (2 / math.pi * (angle + within) if odd else within)
