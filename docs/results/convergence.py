"""What the papers say about the course of training runs, measured on curves."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

from results.curves import Curve
from t2t_repro.features.reproduction.result_files import Course

PLAIN_CURVE, WEIGHTED_CURVE = "transformer_base-long", "weighted_transformer_base-long"
_DIGITS = 4  # after the point


def course_of(curves: Sequence[Curve]) -> Course:
    """Return what the table `text` shows of learning curves.

    Args:
        curves: Learning curves of any runs; those of the long scale count.
    """
    plain, weighted = (
        {curve.seed: curve for curve in curves if curve.name == name}
        for name in (PLAIN_CURVE, WEIGHTED_CURVE)
    )
    return Course(
        relative_updates=_sorted(
            relative_updates(weighted[seed], plain[seed])
            for seed in plain.keys() & weighted.keys()
        ),
        branch_spreads=_sorted(
            max(branch_spreads(curve)) for curve in weighted.values()
        ),
    )


def _sorted(values: Iterable[float]) -> list[float]:
    return sorted(round(value, _DIGITS) for value in values)


def relative_updates(curve: Curve, reference: Curve) -> float:
    """Return the updates of one training run over those of another, for the same nll.

    The nll is the lowest that both training runs reach, so below 1 the first one
    needs fewer updates. Ahmed et al. report 0.6 to 0.85 for the Weighted Transformer
    against the Transformer (section 4.1).

    Args:
        curve: The training run.
        reference: The training run to compare with.
    """
    nll = max(min(curve.nll), min(reference.nll))
    return updates_to(nll, curve.steps, curve.nll) / updates_to(
        nll, reference.steps, reference.nll
    )


def updates_to(nll: float, steps: Sequence[int], values: Sequence[float]) -> float:
    """Return the number of updates after which a curve first reaches an nll.

    Args:
        nll: The nll to reach.
        steps: Steps of the evaluations, rising.
        values: Nll of each evaluation; between two, it is taken to change linearly.

    Raises:
        ValueError: If no value is as low.
    """
    if values[0] <= nll:
        return float(steps[0])
    points = pairwise(zip(steps, values, strict=True))
    for (before, higher), (after, lower) in points:
        if lower <= nll:
            return before + (after - before) * (higher - nll) / (higher - lower)
    raise ValueError(f"expected a value of at most {nll}, received {min(values)}.")


def changed_order(curve: Curve, since: float = 0.0) -> float:
    """Return the share of pairs of branches whose order changes during a training run.

    Ahmed et al. see that "the relative ordering of the branches changes over time"
    (section 4.3). Pairs are of branches of one layer, by kappa or by alpha.

    Args:
        curve: A training run with branches.
        since: Share of the updates; the order at the first evaluation after them is
            compared with that at the last one.
    """
    start = bisect_left(curve.steps, since * curve.steps[-1])
    changed = [
        (first[start] - second[start]) * (first[-1] - second[-1]) < 0
        for layer in curve.branches_by_layer().values()
        for first, second in combinations(layer, 2)
    ]
    return sum(changed) / len(changed)


def branch_spreads(curve: Curve) -> list[float]:
    """Return the largest branch weight over the smallest at the end of a training run.

    Ahmed et al. see relative weights of branches differ by a factor of up to two within
    a layer (section 4.3).

    Args:
        curve: The training run.

    Returns:
        A ratio for each kappa and alpha of each layer; infinity if a branch is off.
    """
    last = (
        [values[-1] for values in layer] for layer in curve.branches_by_layer().values()
    )
    return [max(x) / min(x) if min(x) > 0 else math.inf for x in last]
