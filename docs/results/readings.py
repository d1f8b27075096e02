"""What the pages say about the readings of the Weighted Transformer."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from results import (
    ablation,
    derived,
    form_differences,
    form_runs,
    losses,
    peaks,
    seeds,
    weighted_pairs,
)
from results.convergence import (
    WEIGHTED_CURVE,
    changed_order,
    course_of,
    relative_updates,
)
from results.curves import Curve
from results.form_runs import Repeat
from t2t_repro.features.reproduction.result_files import Result

# Name in the templates -> row of `forms`.
_MAIN = {"weighted": form_runs.WEIGHTED, "equation": form_runs.EQUATION}
_REFERENCES = {"plain": form_runs.PLAIN, "control": form_runs.CONTROL}
# Changes to the reading `around` of the Weighted Transformer.
_AROUND = (
    "around_initial_gain",
    "around_unit_gain",
    "around_self_attention",
    "around_one_network",
    "around_literal",
)
# Name in the templates -> system whose dev nll at the long scale it has.
_LONG = {
    "base": derived.PLAIN,
    "plain_h16": f"{derived.PLAIN}_a_h16",
    "plain_h32": f"{derived.PLAIN}_a_h32",
    "weighted": derived.WEIGHTED,
    "weighted_n4": "weighted_transformer_n4",
    "learned": f"{derived.PLAIN}_e_learned",
    "learned_large": f"{derived.PLAIN}_e_learned_large",
    **{name: f"{derived.WEIGHTED}_{name}" for name in ("merged", "h16", "h32")},
}


def tables(
    results: Sequence[Result], curves: Sequence[Curve], repeats: Sequence[Repeat]
) -> dict[str, str]:
    """Return the tables of the readings, by name in the templates.

    Args:
        results: Results of any systems.
        curves: Learning curves.
        repeats: More runs, for the differences.
    """
    found = {
        "systems": ablation.systems(),
        "repeats": form_runs.repeats_table(results, repeats),
        "forms": ablation.forms(results, curves),
        "peaks": peaks.table(results, repeats, peaks.recorded_runs()),
    }
    for prefix, reference in (("", form_runs.PLAIN), ("control_", form_runs.CONTROL)):
        found[f"{prefix}differences"] = form_differences.differences_table(
            results, curves, repeats, reference
        )
    return found


def values(
    results: Sequence[Result], curves: Sequence[Curve], repeats: Sequence[Repeat]
) -> dict[str, Any]:
    """Return the other values of the readings, by name in the templates.

    Args:
        results: Results of any systems.
        curves: Learning curves.
        repeats: More runs, for the differences.
    """

    def gap(name: str, reference: str) -> dict[str, str]:
        return form_differences.difference_texts(results, repeats, name, reference)

    return {
        **{
            f"{reading}_{other}_gap": gap(name, reference)
            for reading, name in _MAIN.items()
            for other, reference in _REFERENCES.items()
        },
        "no_dropout_gap": gap("weighted_no_attention_dropout", form_runs.PLAIN),
        **weighted_pairs.values(results, repeats, peaks.recorded_runs()),
        "learned_gap": gap("around_near_uniform", "around_fixed"),
        "fixed_gap": gap("around_fixed", form_runs.CONTROL),
        "around_gap": {name: gap(name, "around") for name in _AROUND},
        "additive": form_differences.model_texts(results, repeats),
        "cpu_differences": form_runs.repeat_gaps(results, repeats),
        "course": _course_texts(curves),
        "loss_gaps": losses.gaps(curves),
        "peaks": peaks.values(results, repeats, peaks.recorded_runs()),
        "sizes": derived.parameter_share(results, derived.WEIGHTED, "transformer_big"),
        "long_nll": {
            name: seeds.long_nll(results, system) for name, system in _LONG.items()
        },
    }


def _course_texts(curves: Sequence[Curve]) -> dict[str, Any]:
    """Return what the page says of kappa, alpha and updates of `weighted`."""
    course = course_of(curves)
    own, other = (
        form_runs.cpu_curves(curves, name)
        for name in (form_runs.WEIGHTED, form_runs.CONTROL)
    )
    equal = [relative_updates(own[x], other[x]) for x in own.keys() & other.keys()]
    weighted = [x for x in curves if x.name == WEIGHTED_CURVE]
    changes, late_changes = (
        100 * statistics.mean(changed_order(x, since) for x in weighted)
        for since in (0.0, 0.5)
    )
    updates, equal_updates, spreads = (
        f"{min(values):{form}} to {max(values):{form}}"
        for values, form in (
            (course.relative_updates, ".2f"),
            (equal, ".2f"),
            (course.branch_spreads, ".1f"),
        )
    )
    return {
        "updates": updates,
        "equal_updates": equal_updates,
        "spreads": spreads,
        "largest_spread": f"{max(course.branch_spreads):.1f}",
        "order": changes,
        "late_order": late_changes,
    }
