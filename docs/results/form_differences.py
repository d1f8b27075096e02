"""Differences of the readings from the Transformer, and what the noise leaves of them.

The model of a score is in `additive_model`.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence

from results import form_runs
from results.additive_model import (
    Difference,
    Scores,
    adjusted,
    differences,
    interaction_p_value,
    noise_degrees,
    noise_deviation,
)
from results.convergence import relative_updates
from results.curves import Curve
from results.derived import on_accelerator
from results.form_runs import BLEU, NLL, SCALE, Repeat
from results.tables import without_empty_columns
from t2t_repro.features.reproduction.order_agreement import (
    COVERAGE,
    decimals,
    p_value_cell,
    p_value_text,
)
from t2t_repro.features.reproduction.result_files import NOT_YET, Result
from t2t_repro.text_tables import markdown

NAMES = {NLL: "nll", BLEU: "BLEU"}
LEVEL = 0.05  # of all comparisons of a column together
ACROSS_BLOCKS = " (all pairs)"  # of training runs that differ in seed or hardware
MIN_DEGREES = 4  # of freedom of the noise; with fewer, hardly any difference is found
_HEADINGS = (
    "row",
    *(
        f"{name}, {kind}"
        for name in NAMES.values()
        for kind in ("difference", "p", "detectable")
    ),
    "updates",
)


def differences_table(
    results: Sequence[Result],
    curves: Sequence[Curve],
    repeats: Sequence[Repeat],
    reference: str,
) -> str:
    """Return the differences of all other readings from one, as a table.

    Args:
        results: Results of any systems.
        curves: Learning curves; those named SYSTEM-long belong to a system.
        repeats: More runs for the differences alone.
        reference: Name of the row to compare with.
    """
    system = form_runs.system_of(reference)
    tests = [
        (score, _tested(form_runs.scores_by_block(results, score, repeats), system))
        for score in NAMES
    ]
    lines = [
        [
            f"`forms/{row.name}`",
            *(cell for x in tests for cell in _cells(*x, str(row.system))),
            _updates(str(row.system), system, curves),
        ]
        for row in form_runs.rows()
    ]
    measured = [line for line in lines if any(line[1:])]
    return "\n".join(markdown(without_empty_columns([_HEADINGS, *measured])))


def _cells(score: str, tested: Mapping[str, Difference], system: str) -> list[str]:
    """Return the difference of a score, its p-value, and the detectable difference."""
    if system not in tested:
        return ["", "", ""]
    value, interval = _estimate(score, tested[system])
    p_values = adjusted({name: found.p_value for name, found in tested.items()})
    p_value = p_value_cell(tested[system].p_value, 3)
    return [
        f"{value} ({interval})",
        f"**{p_value}**" if p_values[system] <= LEVEL else p_value,
        _detectable(score, tested[system]),
    ]


def _detectable(score: str, found: Difference) -> str:
    return f"{found.detectable:.{decimals(score)}f}"


def _estimate(score: str, found: Difference) -> tuple[str, str]:
    """Return a difference and its interval, with the decimals of the score."""
    value, low, high = (f"{x:+.{decimals(score)}f}" for x in found[:3])
    return value, f"{low} to {high}"


def difference_texts(
    results: Sequence[Result],
    repeats: Sequence[Repeat],
    name: str,
    reference: str,
) -> dict[str, str]:
    """Write the differences of one reading from another.

    Args:
        results: Results of any systems.
        repeats: More runs of them.
        name: Name of a row.
        reference: Name of the row to compare with.

    Returns:
        Texts by the names in `NAMES`, "not yet measured" without enough seeds.
    """
    texts = {}
    for score, short in NAMES.items():
        scores = form_runs.scores_by_block(results, score, repeats)
        texts[short] = difference_text(scores, score, name, reference)
    return texts


def difference_text(scores: Scores, score: str, name: str, reference: str) -> str:
    """Write the difference of one reading from another, or "not yet measured".

    Args:
        scores: System -> block -> score.
        score: Name of the score.
        name: Name of a row.
        reference: Name of the row to compare with.
    """
    tested = _tested(scores, form_runs.system_of(reference))
    found = tested.get(form_runs.system_of(name))
    if found is None:
        return NOT_YET
    value, interval = _estimate(score, found)
    return (
        f"{value} ({100 * COVERAGE:.0f} % interval {interval}, "
        f"{p_value_text(found.p_value, 3)}, detectable {_detectable(score, found)})"
    )


def model_texts(results: Sequence[Result], repeats: Sequence[Repeat]) -> dict[str, str]:
    """Write the noise of the additive model, and whether hardware contradicts it.

    Args:
        results: Results of any systems.
        repeats: More runs of them.

    Returns:
        "degrees" of freedom; "nll" and "BLEU", standard deviations; "nll_p" and
        "BLEU_p", of the test of systems times hardware.
    """
    texts = {}
    for score, short in NAMES.items():
        scores = form_runs.scores_by_block(results, score, repeats)
        texts["degrees"] = str(noise_degrees(scores))
        texts[short] = f"{noise_deviation(scores):.{decimals(score)}f}"
        p_value = interaction_p_value(scores, lambda block: block[0])
        texts[f"{short}_p"] = p_value_text(p_value, 2)
    return texts


def _tested(scores: Scores, reference: str) -> dict[str, Difference]:
    """Return the differences from a system, or none without enough seeds.

    Args:
        scores: System -> block -> score.
        reference: System to compare with.
    """
    if reference not in scores or noise_degrees(scores) < MIN_DEGREES:
        return {}
    return differences(scores, reference)


def _updates(system: str, reference: str, curves: Sequence[Curve]) -> str:
    """Return the mean of the relative updates over the blocks that both have.

    If they share no block, it is the mean over all pairs of their training runs, marked
    with `ACROSS_BLOCKS`.
    """
    own, other = (
        {
            (on_accelerator(curve.versions), curve.seed): curve
            for curve in curves
            if curve.name == f"{name}-{SCALE}"
        }
        for name in (system, reference)
    )
    if system == reference or not own or not other:
        return ""
    shared = own.keys() & other.keys()
    pairs = (
        [(own[block], other[block]) for block in shared]
        if shared
        else itertools.product(own.values(), other.values())
    )
    mean = statistics.geometric_mean(relative_updates(*pair) for pair in pairs)
    return f"{mean:.2f}{'' if shared else ACROSS_BLOCKS}"
