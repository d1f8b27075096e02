"""Report on a table: published values beside ours."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from t2t_repro.reproduction.agreement import agreement_notes
from t2t_repro.reproduction.comparison import Line, Measured, compare
from t2t_repro.reproduction.curves import Curve
from t2t_repro.reproduction.ranking_report import ranking_blocks, ranking_data
from t2t_repro.reproduction.report import (
    Column,
    Report,
    make_block,
    mean_and_spread,
    published_text,
)
from t2t_repro.reproduction.results import Result
from t2t_repro.reproduction.tables import Table
from t2t_repro.reproduction.text_report import text_report
from t2t_repro.settings.hparams import HParams

NOT_MEASURED = "none yet"

# Task -> name of a score -> heading of its column.
SCORE_HEADINGS = {
    "translation": {
        "perplexity (dev)": "our dev PPL",
        "BLEU (dev)": "our dev BLEU",
        "BLEU (test)": "our test BLEU",
    },
    "layers": {},
    "parsing": {
        "F1 (dev)": "our dev F1",
        "F1 up to 40 words (dev)": "up to 40 words",
        "% repaired (dev)": "% repaired",
    },
}


def comparison_report(
    table: Table,
    hparams_of: Callable[[str], HParams],
    results: Sequence[Result] = (),
    curves: Sequence[Curve] = (),
) -> Report:
    """Report on a table: published values and our scores, then sizes and costs.

    Results of the long scale add rankings, and agreement per group of rows.

    Args:
        table: The table.
        hparams_of: Function from the name of an hparams set to the set.
        results: Results of any systems.
        curves: Learning curves of any runs.
    """
    if table.task == "text":
        return text_report(table, hparams_of, results, curves)
    lines = compare(table, hparams_of, results)
    notes = [*table.notes, *agreement_notes(table, results)]
    own = [line for line in lines if line.hparams_set is not None]
    return Report(
        title=f"{table.name}: {table.title}",
        blocks=[
            make_block(_score_columns(table), lines),
            *([make_block(_cost_columns(table), own)] if own else ()),
            *ranking_blocks(table, results),
        ],
        notes=notes,
        data=_data(table, lines, notes) | ranking_data(table, results),
    )


def _score_columns(table: Table) -> list[Column[Line]]:
    columns = [
        Column[Line]("row", lambda line: line.row, is_number=False),
        Column[Line]("system", lambda line: line.label, is_number=False),
        *(_published_column(table, name) for name in table.columns),
        *(
            _score_column(score, heading)
            for score, heading in SCORE_HEADINGS[table.task].items()
        ),
    ]
    if table.task != "layers":
        columns.append(Column("runs", _runs))
    if "params" in table.columns:
        columns.append(_PARAMETERS)
    return columns


def _cost_columns(table: Table) -> list[Column[Line]]:
    return [
        Column[Line]("row", lambda line: line.row, is_number=False),
        Column[Line]("hparams set", _hparams_set, False),
        *([] if "params" in table.columns else [_PARAMETERS]),
        Column[Line](
            "FLOPs by formula", lambda line: _scientific(line.flops_by_formula)
        ),
        Column[Line]("by hours", lambda line: _scientific(line.flops_by_hours)),
        Column[Line]("our steps", lambda line: _measured_cell(line, _steps)),
        Column[Line]("minutes", lambda line: _measured_cell(line, _minutes)),
        Column[Line]("seeds", lambda line: _measured_cell(line, _seeds), False),
    ]


_PARAMETERS = Column[Line](
    "our params",
    lambda line: "" if line.parameters is None else f"{line.parameters:,}",
)


def _hparams_set(line: Line) -> str:
    """Return the name of the set; `--scale paper` prints the changes of a row."""
    return f"{line.hparams_set}{', changed' if line.hparams else ''}"


def _published_column(table: Table, name: str) -> Column[Line]:
    return Column(
        name,
        lambda line: published_text(line.published.get(name), name),
        is_number=not any(isinstance(row.published[name], str) for row in table.rows),
    )


def _score_column(score: str, heading: str) -> Column[Line]:
    def cell(line: Line) -> str:
        values = () if line.measured is None else line.measured.scores.get(score, ())
        return mean_and_spread(values)

    return Column(heading, cell)


def _runs(line: Line) -> str:
    if line.hparams_set is None:
        return ""
    if line.measured is None:
        return NOT_MEASURED
    return f"{len(line.measured.seeds)} {line.measured.scale}"


def _measured_cell(line: Line, text: Callable[[Measured], str]) -> str:
    return "" if line.measured is None else text(line.measured)


def _steps(measured: Measured) -> str:
    return f"{measured.steps:,}"


def _minutes(measured: Measured) -> str:
    return f"{measured.minutes:.0f}"


def _seeds(measured: Measured) -> str:
    return ", ".join(map(str, measured.seeds))


def _scientific(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _data(table: Table, lines: Sequence[Line], notes: Sequence[str]) -> dict[str, Any]:
    return {
        "table": table.name,
        "title": table.title,
        "split": table.split,
        "lines": [dataclasses.asdict(line) for line in lines],
        "notes": list(notes),
    }
