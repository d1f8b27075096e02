"""Reports: a title, tables and notes, as text, Markdown or JSON."""

from __future__ import annotations

import json
import math
import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from t2t_repro.features.reproduction.paper_tables import Cell, Table
from t2t_repro.text_tables import aligned, markdown

FORMATS = ("text", "json", "markdown")
MAX_WIDTH = 160  # characters per line of text

Line = TypeVar("Line")


@dataclass(frozen=True)
class Column(Generic[Line]):
    """A column of a table, made from lines of any kind.

    Attributes:
        heading: Its heading.
        cell: Function from a line to the text of the cell.
        is_number: Whether to align the cells to the right.
    """

    heading: str
    cell: Callable[[Line], str]
    is_number: bool = True


@dataclass(frozen=True)
class Block:
    """A table of a report.

    Attributes:
        rows: Cells per row; the first row holds the headings.
        right: Indices of the columns that are aligned to the right.
        title: Line above the table; empty for none.
    """

    rows: Sequence[Sequence[str]]
    right: frozenset[int]
    title: str = ""


def make_block(
    columns: Sequence[Column[Line]], lines: Sequence[Line], title: str = ""
) -> Block:
    """Return a table with a row per line."""
    return Block(
        rows=[
            [column.heading for column in columns],
            *([column.cell(line) for column in columns] for line in lines),
        ],
        right=frozenset(
            index for index, column in enumerate(columns) if column.is_number
        ),
        title=title,
    )


@dataclass(frozen=True)
class Report:
    """A table as the user sees it.

    Attributes:
        title: Name and title of the table.
        blocks: Its parts, one below another, so that lines stay short.
        notes: Remarks below the parts.
        data: The same content for programs; JSON values only.
    """

    title: str
    blocks: Sequence[Block]
    notes: Sequence[str]
    data: Mapping[str, Any]


def table_report(
    table: Table,
    blocks: Sequence[Block],
    lines: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    **described: Any,
) -> Report:
    """Report on a table of the papers.

    Args:
        table: The table.
        blocks: The parts of the report.
        lines: The same content for programs, an object per line.
        notes: Remarks below the parts.
        described: More about the table, for programs.
    """
    data = {"table": table.name, "title": table.title, **described}
    data |= {"lines": list(lines), "notes": list(notes)}
    return Report(f"{table.name}: {table.title}", blocks, notes, data)


def mean_and_spread(values: Sequence[float], places: int = 2) -> str:
    """Write the mean of some values, with the standard deviation of two or more.

    Args:
        values: The values, such as one per seed.
        places: Number of decimals.
    """
    if not values:
        return ""
    mean = f"{statistics.mean(values):.{places}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(values):.{places}f}"


def published_text(cell: Cell, column: str) -> str:
    """Write a value as the papers do."""
    if cell is None:
        return ""
    if column == "PPL":
        return f"{cell:.2f}"
    if isinstance(cell, float) and cell >= 1e6:
        return f"{cell:.1e}"
    if isinstance(cell, float):
        return f"{cell:g}" if not math.isclose(cell, round(cell, 1)) else f"{cell:.1f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def write_report(report: Report, form: str = "text") -> str:
    """Return a report as text in one of `FORMATS`."""
    if form == "json":
        return _json(report.data)
    return _markdown(report) if form == "markdown" else _text(report)


def write_reports(reports: Sequence[Report], form: str = "text") -> str:
    """Return several reports as one text; JSON is an array."""
    if form == "json":
        return _json([report.data for report in reports])
    return "\n\n".join(write_report(report, form) for report in reports)


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)


def _text(report: Report) -> str:
    tables = [
        "\n".join([*_title(block), *aligned(block.rows, block.right)])
        for block in report.blocks
    ]
    notes = [line for note in report.notes for line in textwrap.wrap(note, MAX_WIDTH)]
    return "\n".join([report.title, "\n\n".join(tables), *notes])


def _markdown(report: Report) -> str:
    parts = []
    for block in report.blocks:
        parts += [*_title(block), "\n".join(markdown(block.rows, block.right))]
    notes = "\n".join(f"- {note}" for note in report.notes)
    return "\n\n".join([f"### {report.title}", *parts, *([notes] if notes else [])])


def _title(block: Block) -> list[str]:
    return [block.title] if block.title else []
