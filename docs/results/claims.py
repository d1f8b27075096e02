"""Numbers beside the claims of the Weighted Transformer's paper (Ahmed et al.)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from results import derived, form_runs, seeds
from results.convergence import PLAIN_CURVE, WEIGHTED_CURVE
from results.curves import Curve
from results.measurements import Measurement
from t2t_repro.features.reproduction import recipes
from t2t_repro.features.reproduction.result_files import Result

# Rows of the equation-literal reading at the small scale, by name in the templates.
_BASE = "n6"
_EARLIER = {
    "n2": "2 layers (here 1)",
    "n4": "4 layers (here 2)",
    _BASE: "the base model",
    "n8": "8 layers (here 4), dropout 0.3",
    "top2": "gating, the top 2 of 8",
    "top4": "gating, the top 4 of 8",
    "softmax": "softmax of kappa and alpha, nearly uniform at the start",
}
# Models whose kappa and alpha are replaced at test time, by name in the templates.
_REPLACED = {
    "random": "2 layers, random weights",
    "uniform": "2 layers, uniform weights",
}
# The paper trains the Weighted Transformer for 60,000 updates, the other for 100,000.
FEWER_UPDATES = 0.6
# Rows with learned kappa and alpha -> the same with fixed ones.
_LEARNED = {
    "around_near_uniform": "around_fixed",
    form_runs.WEIGHTED: form_runs.CONTROL,
}
# Numbers of updates after which these are compared.
LEARNED_STEPS = (1_000, 2_000, recipes.LONG_STEPS)


def values(
    results: Sequence[Result], curves: Sequence[Curve], earlier: Measurement
) -> dict[str, Any]:
    """Return the numbers, by name in the templates.

    Args:
        results: Results of any systems.
        curves: Learning curves.
        earlier: Scores of the equation-literal reading at the small scale.
    """
    return {
        "literal": literal_gaps(results, earlier, "BLEU (dev)"),
        "literal_perplexity": literal_gaps(results, earlier, "perplexity (dev)"),
        "literal_replaced": replaced_gaps(earlier),
        "fewer": {
            "percent": 100 * FEWER_UPDATES,
            "weighted": nll_after(curves, WEIGHTED_CURVE, FEWER_UPDATES),
            "plain": nll_after(curves, PLAIN_CURVE, 1.0),
            "plain_after_as_many": nll_after(curves, PLAIN_CURVE, FEWER_UPDATES),
        },
        "learning": {
            "steps": _listed([f"{step:,}" for step in LEARNED_STEPS]),
            **{
                name: gaps_after(curves, name, other, LEARNED_STEPS)
                for name, other in _LEARNED.items()
            },
        },
    }


def literal_gaps(
    results: Sequence[Result], earlier: Measurement, score: str
) -> dict[str, float]:
    """Return differences of the equation-literal reading at the small scale.

    Args:
        results: Results of any systems.
        earlier: Scores of this reading.
        score: Name of the score.

    Returns:
        "n2", "n4", "n6" and "n8" layers, minus the Transformer with as many; "top2",
        "top4" and "softmax", minus the reading itself.
    """
    heading = {"BLEU (dev)": "dev BLEU", "perplexity (dev)": "dev perplexity"}[score]
    columns = earlier.columns("system", heading)
    scores: Mapping[str, float] = dict(zip(*columns, strict=True))
    plain = {
        name: statistics.mean(seeds.by_seed(results, system, score).values())
        for name, (system, _) in derived.SIZES.items()
    }
    base = scores[_EARLIER[_BASE]]
    return {
        name: scores[label] - plain.get(name, base) for name, label in _EARLIER.items()
    }


def replaced_gaps(earlier: Measurement) -> dict[str, float]:
    """Return the dev BLEU that replaced kappa and alpha change, with two layers.

    Args:
        earlier: Scores of the equation-literal reading.

    Returns:
        "random" and "uniform" weights, minus the learned ones.
    """
    scores = dict(zip(*earlier.columns("system", "dev BLEU"), strict=True))
    learned = scores[_EARLIER["n2"]]
    return {name: scores[label] - learned for name, label in _REPLACED.items()}


def nll_after(curves: Sequence[Curve], name: str, share: float) -> float:
    """Return the mean dev nll of the seeds of a curve after a share of their updates.

    Args:
        curves: Learning curves of any systems.
        name: Name of the curve.
        share: Share of the updates, at which there is an evaluation.
    """
    return statistics.mean(
        _nll_at(x, round(share * x.steps[-1])) for x in curves if x.name == name
    )


def gaps_after(
    curves: Sequence[Curve], row: str, reference: str, steps: Sequence[int]
) -> str:
    """Describe the difference between two rows of `forms` in training, on CPUs.

    Args:
        curves: Learning curves of any systems.
        row: Name of a row.
        reference: Name of the row to compare with; both have a common seed.
        steps: Numbers of updates, at which there are evaluations.

    Returns:
        For each number of updates, the mean difference between the dev nll of runs of
        one seed, as text; and the number of seeds.
    """
    mine, other = (form_runs.cpu_curves(curves, name) for name in (row, reference))
    pairs = [(mine[seed], other[seed]) for seed in mine.keys() & other.keys()]
    gaps = [
        statistics.mean(_nll_at(x, step) - _nll_at(y, step) for x, y in pairs)
        for step in steps
    ]
    return f"{_listed([f'{gap:+.3f}' for gap in gaps])} ({seeds.number_text(pairs)})"


def _listed(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def _nll_at(curve: Curve, step: int) -> float:
    return curve.nll[list(curve.steps).index(step)]
