"""Dev nll of the main readings at other peaks of the learning rate."""

from __future__ import annotations

from collections.abc import Sequence

from results import form_runs
from results.additive_model import Scores
from results.curves import Curve
from results.form_differences import difference_text
from results.form_runs import NLL, SCALE, Repeat
from results.tables import without_empty_columns
from t2t_repro.features.reproduction.order_agreement import decimals
from t2t_repro.features.reproduction.report_writer import mean_and_spread
from t2t_repro.features.reproduction.result_files import NOT_YET, Result
from t2t_repro.text_tables import markdown

ROWS = (form_runs.CONTROL, form_runs.WEIGHTED, form_runs.EQUATION)
# The peaks, as multiples of the peak of all rows.
PEAKS = {"half": "0.5", "own": "", "twice": "2", "four": "4"}
_HEADINGS = (
    "row",
    "half the peak",
    "the peak of all rows",
    "twice the peak",
    "four times the peak",
)


def scores_by_peak(
    results: Sequence[Result], curves: Sequence[Curve], repeats: Sequence[Repeat]
) -> dict[str, Scores]:
    """Return the dev nll after the last update of the rows' runs on CPUs.

    Args:
        results: Results of any systems.
        curves: Learning curves; those named SYSTEM-long-peak2 have twice the peak.
        repeats: More runs.

    Returns:
        Name in `PEAKS` -> system -> seed -> nll.
    """
    systems = [form_runs.system_of(name) for name in ROWS]
    found: dict[str, Scores] = {
        peak: {
            system: {
                curve.seed: curve.nll[-1]
                for curve in curves
                if curve.name == f"{system}-{SCALE}-peak{factor}"
            }
            for system in systems
        }
        for peak, factor in PEAKS.items()
    }
    blocks = form_runs.scores_by_block(results, NLL, repeats)
    found["own"] = {
        system: {
            seed: nll
            for (accelerated, seed), nll in blocks.get(system, {}).items()
            if not accelerated
        }
        for system in systems
    }
    return found


def table(scores: dict[str, Scores]) -> str:
    """Return the means of `scores_by_peak` as a table."""
    lines = [
        [f"`forms/{name}`", *(_mean(scores[peak], name) for peak in PEAKS)]
        for name in ROWS
    ]
    return "\n".join(markdown(without_empty_columns([_HEADINGS, *lines])))


def values(scores: dict[str, Scores]) -> dict[str, dict[str, str]]:
    """Return what the page says of `scores_by_peak`.

    Returns:
        Name in `PEAKS` -> row -> its mean; and for the readings, such as
        "weighted_gap", the difference from the Transformer with the same dropout.
    """
    return {
        peak: {
            **{name: _mean(own, name) or NOT_YET for name in ROWS},
            **{
                f"{name}_gap": difference_text(own, NLL, name, form_runs.CONTROL)
                for name in ROWS[1:]
            },
        }
        for peak, own in scores.items()
    }


def _mean(scores: Scores, name: str) -> str:
    """Return the mean over a row's seeds, their deviation and number."""
    own = [*scores[form_runs.system_of(name)].values()]
    seeds = f" ({len(own)} seeds)" if len(own) > 1 else " (one seed)" if own else ""
    return mean_and_spread(own, decimals(NLL)) + seeds
