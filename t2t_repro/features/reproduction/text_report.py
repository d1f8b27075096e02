"""Report on the figures in the papers' text: published beside ours."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from t2t_repro.features.reproduction.paper_tables import VOCAB_SIZE, Row, Table
from t2t_repro.features.reproduction.report_writer import (
    Column,
    Report,
    make_block,
    table_report,
)
from t2t_repro.features.reproduction.result_files import (
    NO_COURSE,
    NOT_YET,
    Course,
    Result,
)
from t2t_repro.models.estimates import parameter_count
from t2t_repro.settings.hparams import HParams

# Row -> system whose training at the paper's scale gives the time of a step.
STEP_TIMES = {
    "base_step_seconds": "transformer_base",
    "big_step_seconds": "transformer_big",
}
# The Transformer, and the first experiment with attention over parameters.
AOP_STEP_TIMES = "transformer_base", "transformer_base_aop1"


def text_report(
    table: Table,
    hparams_of: Callable[[str], HParams],
    results: Sequence[Result] = (),
    course: Course = NO_COURSE,
) -> Report:
    """Report on the figures in the papers' text.

    Args:
        table: The table `text`, or some of its rows.
        hparams_of: Function from the name of an hparams set to the set.
        results: Results of any systems.
        course: Numbers about the course of training runs.
    """
    ours = {
        row.name: our_figure(row.name, hparams_of, results, course)
        for row in table.rows
    }
    columns = [
        Column[Row]("row", lambda row: row.name, is_number=False),
        Column[Row]("figure", lambda row: f"{row.label}{row.mark}", is_number=False),
        Column[Row]("published", lambda row: str(row.published["published"]), False),
        Column[Row]("ours", lambda row: ours[row.name], is_number=False),
        Column[Row]("source", lambda row: str(row.published["source"]), False),
    ]
    notes = [*table.notes, _note_on_added_weights(hparams_of)]
    lines = [
        {"row": row.name, "figure": row.label, **row.published, "ours": ours[row.name]}
        for row in table.rows
    ]
    return table_report(table, [make_block(columns, table.rows)], lines, notes)


def our_figure(
    name: str,
    hparams_of: Callable[[str], HParams],
    results: Sequence[Result],
    course: Course,
) -> str:
    """Return our counterpart of a figure, or `NOT_YET`.

    Args:
        name: Name of its row.
        hparams_of: Function from the name of an hparams set to the set.
        results: Results of any systems.
        course: Numbers about the course of training runs.
    """
    if name == "added_weights":
        return f"{added_weights(hparams_of, 'big'):,}"
    if name == "fewer_iterations":
        return _range([_fewer_or_more(x) for x in course.relative_updates])
    if name == "branch_weight_spread":
        return _range([f"{value:.1f}" for value in course.branch_spreads])
    if name == "aop_step_time":
        base, first = (_step_seconds(x, results) for x in AOP_STEP_TIMES)
        return f"{100 * (first / base - 1):+.0f} %" if base and first else NOT_YET
    seconds = _step_seconds(STEP_TIMES.get(name, ""), results)
    return f"{seconds:.2f} s" if seconds else NOT_YET


def _step_seconds(system: str, results: Sequence[Result]) -> float | None:
    """Return a system's mean time per step at the paper's scale, if it was trained."""
    seconds = [
        result.seconds / result.steps
        for result in results
        if result.scale == "paper" and result.system == system
    ]
    return statistics.mean(seconds) if seconds else None


def _fewer_or_more(ratio: float) -> str:
    """Write a ratio of updates as "7 % more"."""
    percent = round(100 * (ratio - 1))
    return f"{abs(percent)} % {'fewer' if percent < 0 else 'more'}"


def _range(values: Sequence[str]) -> str:
    """Write sorted values of seeds as their range, or `NOT_YET` without any."""
    if not values:
        return NOT_YET
    ends = dict.fromkeys((values[0], values[-1]))
    seeds = "1 seed" if len(values) == 1 else f"{len(values)} seeds"
    return f"{' to '.join(ends)} ({seeds})"


def added_weights(hparams_of: Callable[[str], HParams], size: str) -> int:
    """Count the weights that a Weighted Transformer has above the Transformer.

    Args:
        hparams_of: Function from the name of an hparams set to the set.
        size: "base" or "big".
    """
    weighted = hparams_of(f"weighted_transformer_{size}")
    plain = hparams_of(f"transformer_{size}")
    counts = [parameter_count(x, VOCAB_SIZE, VOCAB_SIZE) for x in (weighted, plain)]
    return counts[0] - counts[1]


def _note_on_added_weights(hparams_of: Callable[[str], HParams]) -> str:
    return (
        "added_weights, ours: weighted_transformer_big, with 16 branches in 12 layers. "
        f"weighted_transformer_base has {added_weights(hparams_of, 'base'):,}."
    )
