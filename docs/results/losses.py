"""Dev nll against training nll, as in figure 2 of Ahmed et al.

They see lower test losses at equal training losses with the Weighted Transformer, and
call it a regularizing effect (section 4.2). Training nll is that of batches with
dropout, so only systems with the same dropout are comparable. (The equation-literal
reading drops residuals once per layer instead of twice.)
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from results import form_runs, seeds
from results.curve_figures import shared_points
from results.curves import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

ROWS = (form_runs.CONTROL, form_runs.WEIGHTED, form_runs.EQUATION)
FIRST_SHARE = 0.2  # of the updates, which are not drawn


def curves_by_row(curves: Sequence[Curve]) -> dict[str, dict[int, Curve]]:
    """Return the curves on CPUs with training nll: row of `forms` -> seed -> curve."""
    found: dict[str, dict[int, Curve]] = {}
    for row in ROWS:
        of_row = form_runs.cpu_curves(curves, row)
        own = {seed: x for seed, x in of_row.items() if x.training_nll}
        if own:
            found[row] = own
    return found


def draw(canvas: Canvas, curves: Sequence[Curve]) -> None:
    """Draw the mean dev nll of each row against its mean training nll."""
    axes = canvas.subplots()
    for row, by_seed in curves_by_row(curves).items():
        own = [*by_seed.values()]
        dev = shared_points(own)
        training = shared_points(own, "training_nll")
        steps = [step for step in dev if step >= FIRST_SHARE * max(dev)]
        axes.plot(
            [statistics.mean(training[step]) for step in steps],
            [statistics.mean(dev[step]) for step in steps],
            marker="o",
            label=f"{row} ({len(own)} seed{'s' * (len(own) > 1)})",
        )
    axes.invert_xaxis()
    axes.set(xlabel="training nll per token, with dropout", ylabel="dev nll per token")
    axes.legend()


def gap(curve: Curve, reference: Curve) -> float:
    """Return dev nll minus the reference's, at the last training nll that both reach.

    Between two evaluations, dev nll is interpolated.
    """
    level = max(min(curve.training_nll), min(reference.training_nll))
    mine, other = (
        float(np.interp(level, x.training_nll[::-1], x.nll[::-1]))
        for x in (curve, reference)
    )
    return mine - other


def gaps(curves: Sequence[Curve]) -> dict[str, str]:
    """Describe `gap` from the Transformer with the same dropout, by row of `forms`."""
    found = curves_by_row(curves)
    control = found.get(form_runs.CONTROL, {})
    texts = {}
    for row in ROWS:
        own = found.get(row, {})
        values = [gap(own[seed], control[seed]) for seed in own.keys() & control.keys()]
        texts[row] = seeds.gap_text(values, 3)
    return texts
