"""Student's t distribution, and intervals of differences.

Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def two_sided_p(t: float, degrees: int) -> float:
    """Return the probability that |T| is at least |t|, to an absolute error of 1e-12.

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
    return max(0.0, 1 - (2 / math.pi * (angle + within) if odd else within))


def critical_value(coverage: float, degrees: int) -> float:
    """Return the t whose interval from -t to t has a probability, by bisection.

    Args:
        coverage: Probability of the interval, above 0 and below 1.
        degrees: Degrees of freedom, at least 1.
    """
    low, high = 0.0, 1.0
    while two_sided_p(high, degrees) > 1 - coverage:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if two_sided_p(middle, degrees) > 1 - coverage:
            low = middle
        else:
            high = middle
    return high


def confidence_interval(
    coverage: float, first: Sequence[float], second: Sequence[float]
) -> tuple[float, float]:
    """Return the confidence interval of the difference between two means.

    Welch 1947, with the degrees of freedom rounded down. Without any variance, both
    ends are the difference.

    Args:
        coverage: Probability of the interval, above 0 and below 1.
        first: At least two scores of one system.
        second: At least two scores of the other, which are subtracted.
    """
    groups = first, second
    parts = [statistics.variance(group) / len(group) for group in groups]
    inverse = sum(
        part**2 / (len(group) - 1) for part, group in zip(parts, groups, strict=True)
    )
    middle = statistics.mean(first) - statistics.mean(second)
    if not inverse:
        return middle, middle
    # Rounding errors must not cost a degree of freedom: 1 may be 0.9999999999999998.
    degrees = math.floor(sum(parts) ** 2 / inverse + 1e-9)
    limit = math.sqrt(sum(parts)) * critical_value(coverage, degrees)
    return middle - limit, middle + limit
