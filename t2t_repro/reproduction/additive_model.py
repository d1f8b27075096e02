"""Test differences between systems whose training runs share seeds.

Runs of the same seed see the same data in the same order, so their scores rise and fall
together. The model of a score is system + seed + noise: a two-way layout without
interaction, with seeds as blocks (Scheffé 1959, The Analysis of Variance, chapter 4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from t2t_repro.reproduction.t_test import two_sided_p


def p_values(
    scores: Mapping[str, Mapping[int, float]], reference: str
) -> dict[str, float]:
    """Return the p-value of each system's difference from a reference.

    The noise is estimated from all systems, so two seeds of many systems are enough
    for a small p-value. For two systems with the same seeds, this is the paired t-test.

    Args:
        scores: System -> seed -> score. Systems may have different seeds.
        reference: Name of the system to compare with.

    Returns:
        Two-sided p-values of Student's t, not corrected for the number of systems.
        Systems are left out if they share no seed with the reference, directly or by
        other systems; all are if no degree of freedom is left for the noise.
    """
    degrees = noise_degrees(scores)
    if not degrees:
        return {}
    design = _design(scores)
    values = np.array([x for seeds in scores.values() for x in seeds.values()])
    inverse = np.linalg.pinv(design)
    coefficients = inverse @ values
    variance = np.sum((values - design @ coefficients) ** 2) / degrees
    names = list(scores)
    found = {}
    for name in names:
        contrast = np.zeros(design.shape[1])
        contrast[names.index(name)] += 1
        contrast[names.index(reference)] -= 1
        estimable = np.allclose(contrast @ inverse @ design, contrast)
        if name != reference and estimable:
            error = math.sqrt(variance * np.sum((contrast @ inverse) ** 2))
            found[name] = two_sided_p(float(contrast @ coefficients) / error, degrees)
    return found


def noise_degrees(scores: Mapping[str, Mapping[int, float]]) -> int:
    """Return the degrees of freedom that systems and seeds leave for the noise.

    Args:
        scores: System -> seed -> score.
    """
    design = _design(scores)
    return len(design) - int(np.linalg.matrix_rank(design))


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


def _design(scores: Mapping[str, Mapping[int, float]]) -> np.ndarray:
    """Return a line per run, with a one for its system and a one for its seed."""
    systems = list(scores)
    seeds = sorted({seed for runs in scores.values() for seed in runs})
    runs = [(name, seed) for name, own in scores.items() for seed in own]
    design = np.zeros((len(runs), len(systems) + len(seeds)))
    for line, (name, seed) in zip(design, runs, strict=True):
        line[systems.index(name)] = 1
        line[len(systems) + seeds.index(seed)] = 1
    return design
