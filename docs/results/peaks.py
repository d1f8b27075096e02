"""Dev nll of the main readings at other peaks of the learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    """Return the dev nll of each row after the last update, by peak, as a table.

    Args:
        results: Results of any systems.
        curves: Learning curves; those named SYSTEM-long-peak0.5 and SYSTEM-long-peak2
            have half and twice the peak.
        repeats: More runs; those on CPUs have the same seed and hardware as the curves.
    """
    own = form_runs.scores_by_block(results, NLL, repeats)
    others = {x.name: x.nll[-1] for x in curves if x.seed == SEED}
    lines: list[Sequence[str]] = [_HEADINGS]
    for name in ROWS:
        system = form_runs.system_of(name)
        lines.append([f"`forms/{name}`", *_cells(system, own, others)])
    return "\n".join(markdown(lines))


def _cells(
    system: str,
    own: Mapping[str, Mapping[tuple[bool, int], float]],
    others: Mapping[str, float],
) -> list[str]:
    """Return the nll of one system at the three peaks."""
    half, twice = (others.get(f"{system}-{SCALE}-peak{x}") for x in ("0.5", "2"))
    values = [half, own.get(system, {}).get((False, SEED)), twice]
    return [NOT_YET if x is None else f"{x:.{decimals(NLL)}f}" for x in values]
