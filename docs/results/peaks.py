"""Dev nll of the main readings at other peaks of the learning rate."""

from __future__ import annotations

from collections.abc import Sequence

from results import form_runs
from results.curves import Curve
from results.form_runs import NLL, SCALE, Repeat
from t2t_repro.features.reproduction.order_agreement import decimals
from t2t_repro.features.reproduction.result_files import NOT_YET, Result
from t2t_repro.text_tables import markdown

ROWS = (form_runs.CONTROL, form_runs.WEIGHTED, form_runs.EQUATION)
SEED = 1
_HEADINGS = ("row", "half the peak", "the peak of all rows", "twice the peak")


def table(
    results: Sequence[Result], curves: Sequence[Curve], repeats: Sequence[Repeat]
) -> str:
    """Return `values` as a table."""
    lines: list[Sequence[str]] = [_HEADINGS]
    for name, cells in values(results, curves, repeats).items():
        lines.append([f"`forms/{name}`", *cells.values()])
    return "\n".join(markdown(lines))


def values(
    results: Sequence[Result], curves: Sequence[Curve], repeats: Sequence[Repeat]
) -> dict[str, dict[str, str]]:
    """Return the dev nll of each row after the last update, by peak, as text.

    Args:
        results: Results of any systems.
        curves: Learning curves; those named SYSTEM-long-peak0.5 and SYSTEM-long-peak2
            have half and twice the peak.
        repeats: More runs; those on CPUs have the same seed and hardware as the curves.

    Returns:
        Name of a row -> "half", "own" and "twice" the peak -> nll, or "not yet
        measured".
    """
    own = form_runs.scores_by_block(results, NLL, repeats)
    others = {x.name: x.nll[-1] for x in curves if x.seed == SEED}
    found: dict[str, dict[str, str]] = {}
    for name in ROWS:
        system = form_runs.system_of(name)
        found[name] = {
            "half": _text(others.get(f"{system}-{SCALE}-peak0.5")),
            "own": _text(own.get(system, {}).get((False, SEED))),
            "twice": _text(others.get(f"{system}-{SCALE}-peak2")),
        }
    return found


def _text(nll: float | None) -> str:
    return NOT_YET if nll is None else f"{nll:.{decimals(NLL)}f}"
