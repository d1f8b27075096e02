"""Test differences between systems whose training runs come in blocks.

A block is a seed, on one kind of hardware: its runs see the same data in the same
order, so their scores may rise and fall together. A run that is alone in its block adds
nothing to any difference. The model of a score is system + block + noise: a two-way
layout without interaction (Scheffé 1959, The Analysis of Variance, chapter 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import optimize, stats

from t2t_repro.features.reproduction.order_agreement import COVERAGE

POWER = 0.8
# System -> block -> score.
Scores: TypeAlias = Mapping[str, Mapping[Any, float]]


class Difference(NamedTuple):
    """A system's difference from a reference.

    Attributes:
        value: The estimated difference.
        low: Lower end of its confidence interval.
        high: Upper end.
        p_value: Two-sided p-value of Student's t, not corrected for the number of
            systems.
        detectable: True difference that such runs would find in 80 % of all cases:
            with an interval, as above, that does not contain zero.
    """

    value: float
    low: float
    high: float
    p_value: float
    detectable: float


def differences(
    scores: Scores, reference: str, coverage: float = COVERAGE
) -> dict[str, Difference]:
    """Estimate each system's difference from a reference.

    The noise is estimated from all systems, so two blocks of many systems are enough
    for a small p-value. For two systems in the same blocks, this is the paired t-test.

    Args:
        scores: System -> block -> score. Systems may have different blocks.
        reference: Name of the system to compare with.
        coverage: Probability of the confidence intervals.

    Returns:
        System -> difference. Systems are left out if they share no block with the
        reference, directly or by other systems; all are if no degree of freedom is
        left for the noise.
    """
    degrees = noise_degrees(scores)
    if not degrees:
        return {}
    design = _design(scores)
    inverse = np.linalg.pinv(design)
    coefficients = inverse @ _values(scores)
    deviation = noise_deviation(scores)
    names = list(scores)
    found = {}
    for name in names:
        contrast = np.zeros(design.shape[1])
        contrast[names.index(name)] += 1
        contrast[names.index(reference)] -= 1
        estimable = np.allclose(contrast @ inverse @ design, contrast)
        if name != reference and estimable:
            error = deviation * math.sqrt(np.sum((contrast @ inverse) ** 2))
            value = float(contrast @ coefficients)
            low, high = stats.t.interval(coverage, degrees, value, error)
            p_value = 2 * stats.t.sf(abs(value) / error, degrees)
            detectable = error * _detectable(degrees, coverage)
            found[name] = Difference(
                value, float(low), float(high), float(p_value), detectable
            )
    return found


def _detectable(degrees: int, coverage: float) -> float:
    """Return the smallest difference, in standard errors, that has the power `POWER`.

    The statistic of the test has a noncentral t distribution.
    """
    limit = stats.t.ppf((1 + coverage) / 2, degrees)

    def missing(difference: float) -> float:
        return float(stats.nct.sf(limit, degrees, difference)) - POWER

    return float(optimize.brentq(missing, 0.0, 10 * limit))


def noise_degrees(scores: Scores) -> int:
    """Return the degrees of freedom that systems and blocks leave for the noise.

    Args:
        scores: System -> block -> score.
    """
    design = _design(scores)
    return len(design) - int(np.linalg.matrix_rank(design))


def noise_deviation(scores: Scores) -> float:
    """Return the standard deviation of the noise, which is the same for all systems.

    Args:
        scores: System -> block -> score, with a degree of freedom for the noise.
    """
    degrees = noise_degrees(scores)
    return math.sqrt(_residual(_values(scores), _design(scores)) / degrees)


def interaction_p_value(scores: Scores, kind: Callable[[Any], Any]) -> float:
    """Return the p-value of the F test of systems times kinds of blocks.

    A small one contradicts the model: kinds of blocks, such as hardware, then change
    the differences between systems.

    Args:
        scores: System -> block -> score.
        kind: Function that returns the kind of a block.
    """
    values, design = _values(scores), _design(scores)
    groups = [(name, kind(block)) for name, own in scores.items() for block in own]
    names = [*dict.fromkeys(groups)]
    wider = np.hstack([design, [[float(x == name) for name in names] for x in groups]])
    degrees = len(design) - int(np.linalg.matrix_rank(wider))
    added = noise_degrees(scores) - degrees
    if not added or not degrees:
        return 1.0
    rest = _residual(values, wider)
    ratio = (_residual(values, design) - rest) / added / (rest / degrees)
    return float(stats.f.sf(ratio, added, degrees))


def adjusted(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjust p-values for their number, so that any false finding is improbable.

    Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure".
    """
    found, largest = {}, 0.0
    ranked = sorted(p_values.items(), key=lambda item: item[1])
    for rank, (name, p_value) in enumerate(ranked):
        largest = max(largest, min(1.0, p_value * (len(ranked) - rank)))
        found[name] = largest
    return found


def _values(scores: Scores) -> np.ndarray:
    """Return the score of each line of `_design`."""
    return np.array([x for own in scores.values() for x in own.values()])


def _residual(values: np.ndarray, design: np.ndarray) -> float:
    """Return the sum of squares that a linear model leaves."""
    return float(np.sum((values - design @ (np.linalg.pinv(design) @ values)) ** 2))


def _design(scores: Scores) -> np.ndarray:
    """Return a line per run, with a one for its system and a one for its block."""
    systems = list(scores)
    blocks = [*dict.fromkeys(block for own in scores.values() for block in own)]
    runs = [(name, block) for name, own in scores.items() for block in own]
    design = np.zeros((len(runs), len(systems) + len(blocks)))
    for line, (name, block) in zip(design, runs, strict=True):
        line[systems.index(name)] = 1
        line[len(systems) + blocks.index(block)] = 1
    return design
