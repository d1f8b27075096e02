"""Measurement files: numbers that belong to no row of the papers' tables.

Examples are the quality of the embedded problem and the time of a layer. Each file
records its command, commit, hardware and signature. The pages of results show these
numbers, or link the file.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from t2t_repro.text_tables import markdown

LINE_LENGTH = 94  # characters of a command, before the backslash


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Some numbers, and how they were measured.

    Attributes:
        name: Name of the file, without its ending.
        source: Program that wrote the file, or the text that it was copied from.
        commit: Commit that was measured; empty if it was not recorded.
        date: Day of the measurement.
        command: Command, or a description of the program.
        hardware: Processor and number of cores.
        signature: Signatures of the metrics; empty for times.
        numbers: Value by name.
        table: "columns", each with "heading" and the "format" of its cells, and "rows"
            of cells; None marks an empty cell. If there is a list "shown", a page shows
            only the rows with these indices.
    """

    name: str
    source: str
    commit: str
    date: str
    command: str
    hardware: str
    signature: str
    numbers: Mapping[str, float | str]
    table: Mapping[str, Any] | None = None

    def columns(self, *headings: str) -> list[list[Any]]:
        """Return columns of the table by heading; they are empty without a table."""
        table = self.table or {"columns": [], "rows": []}
        names = [column["heading"] for column in table["columns"]]
        return [
            [row[names.index(heading)] for row in table["rows"]] for heading in headings
        ]

    def table_text(self) -> str:
        """Return the table in Markdown."""
        if self.table is None:
            return ""
        columns = self.table["columns"]
        rows = [
            [
                "" if cell is None else format(cell, column["format"])
                for cell, column in zip(row, columns, strict=True)
            ]
            for number, row in enumerate(self.table["rows"])
            if number in self.table.get("shown", range(len(self.table["rows"])))
        ]
        headings = [column["heading"] for column in columns]
        return "\n".join(markdown([headings, *rows]))

    def values(self) -> dict[str, float | str]:
        """Return everything that a page may show, by name."""
        return {
            **self.numbers,
            "command": _on_several_lines(self.command),
            "hardware": self.hardware,
            "signature": self.signature,
            "table": self.table_text(),
            "record": f"[{self.name}]({self.link})",
        }

    @property
    def link(self) -> str:
        """Return the path of the file from the pages in `docs/results/`."""
        return f"data/measurements/{self.name}.json"


def recorded_measurements() -> dict[str, Measurement]:
    """Return the measurements of the repository, by name."""
    return measurements_in(resources.files("results") / "data/measurements")


def measurements_in(folder: Traversable) -> dict[str, Measurement]:
    """Return the measurements of a folder, by name.

    Raises:
        ValueError: If a file is not a measurement, or has another's name.
    """
    found = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".json"):
            continue
        try:
            measurement = Measurement(**json.loads(file.read_text(encoding="utf-8")))
        except TypeError as error:
            raise ValueError(f"{file.name} is not a measurement: {error}") from error
        if file.name != f"{measurement.name}.json":
            raise ValueError(f"{file.name} has the name {measurement.name!r} inside")
        found[measurement.name] = measurement
    return found


def _on_several_lines(command: str) -> str:
    """Break a long command before its flags, as a shell accepts it."""
    lines: list[str] = []
    for words in command.split(" --"):
        text = f"--{words}" if lines else words
        if lines and len(lines[-1]) + len(text) < LINE_LENGTH:
            lines[-1] += f" {text}"
        else:
            lines.append(f"    {text}" if lines else text)
    return " \\\n".join(lines)
