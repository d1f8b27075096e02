"""Figures of the page of results that are drawn from learning curves of runs."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from results.curves import Curve
from t2t_repro.features.reproduction.paper_tables import find_table

# Figure 3 of Ahmed et al. shows the second encoder layer of configuration (C), which
# has two layers; so has this row, with half of its four.
BRANCH_CURVE = "weighted_transformer_n4-long"

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


def draw_learning_curves(canvas: Canvas, curves: Sequence[Curve]) -> None:
    """Draw dev nll during the training runs of `forms` at the long scale.

    Each row has a line, in the order of their ends, which begins after a tenth of the
    run: before, the nll falls so fast that the lines could not be told apart.

    Args:
        canvas: Figure to draw on.
        curves: Learning curves of any systems.
    """
    axes = canvas.subplots()
    groups = sorted(long_curves(curves).items(), key=lambda x: -_last_nll(x[1]))
    # More settings than colours.
    styles = itertools.cycle(["-"] * 10 + ["--"] * 10)
    for (name, group), style in zip(groups, styles, strict=False):
        _draw_mean(axes, name, group, style)
    axes.set(xlabel="steps", ylabel="dev nll per token")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))


def long_curves(curves: Sequence[Curve]) -> dict[str, list[Curve]]:
    """Return the curves of `forms` at the long scale, by name of the row."""
    rows = {f"{row.system}-long": row.name for row in find_table("forms").rows}
    found: dict[str, list[Curve]] = {}
    for curve in curves:
        if curve.name in rows:
            found.setdefault(rows[curve.name], []).append(curve)
    return found


def _draw_mean(axes: Axes, name: str, curves: Sequence[Curve], style: str) -> None:
    """Draw the mean of the seeds, with the range between them."""
    points = shared_points(curves)
    points = {step: x for step, x in points.items() if step >= max(points) / 10}
    steps, columns = list(points), list(points.values())
    seeds = f"{len(curves)} seed" + "s" * (len(curves) > 1)
    (line,) = axes.plot(
        steps,
        [statistics.mean(x) for x in columns],
        linestyle=style,
        label=f"{name} ({seeds})",
    )
    axes.fill_between(
        steps,
        [min(x) for x in columns],
        [max(x) for x in columns],
        alpha=0.2,
        color=line.get_color(),
    )


def shared_points(curves: Sequence[Curve], name: str = "nll") -> dict[int, list[float]]:
    """Return the nll of each curve at the steps that all of them have, by step.

    Args:
        curves: At least one curve.
        name: "nll" or "training_nll".
    """
    values = [
        dict(zip(curve.steps, getattr(curve, name), strict=True)) for curve in curves
    ]
    steps = sorted(set(values[0]).intersection(*values))
    return {step: [nll[step] for nll in values] for step in steps}


def draw_branch_weights(canvas: Canvas, curves: Sequence[Curve]) -> None:
    """Draw kappa and alpha in the second layers of the first `BRANCH_CURVE`.

    Args:
        canvas: Figure to draw on.
        curves: Learning curves.
    """
    curve = next(curve for curve in curves if curve.name == BRANCH_CURVE)
    groups = curve.branches_by_layer()
    layers = [name for name in groups if "layer_1" in name]
    for axes, layer in zip(
        canvas.subplots(1, len(layers), sharey=True, squeeze=False)[0],
        layers,
        strict=True,
    ):
        for values in groups[layer]:
            axes.plot(curve.steps, values)
        axes.set(xlabel="steps", title=layer)
        axes.title.set_fontsize(8)
    canvas.suptitle(f"{curve.name}, seed {curve.seed}; a line per branch", fontsize=9)


def _last_nll(curves: Sequence[Curve]) -> float:
    return statistics.mean(curve.nll[-1] for curve in curves)
