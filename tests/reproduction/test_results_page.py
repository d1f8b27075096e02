"""The page of results agrees with the result files."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

from t2t_repro.reproduction.agreement import agreement_notes
from t2t_repro.reproduction.lookup import find_table as table
from t2t_repro.reproduction.results import Result, shipped_results
from t2t_repro.reproduction.tables import Row

PAGE = Path(__file__).parents[2] / "docs" / "results.md"
COLUMNS = ("perplexity (dev)", "BLEU (dev)", "BLEU (test)")
# Published column with the BLEU of the systems that are measured, by table.
PUBLISHED = {
    "table3": "BLEU",
    "aop": "BLEU",
    "sensitivity": "Weighted",
    "randomisation": "BLEU",
}


def mean_and_spread(values: list[float]) -> str:
    if not values:
        return ""
    text = f"{statistics.mean(values):.2f}"
    return text if len(values) == 1 else f"{text} ± {statistics.stdev(values):.2f}"


def line(name: str, row: Row, results: list[Result]) -> str:
    perplexity = row.published.get("PPL")
    cells = [
        f"`{name}/{row.name}`",
        "" if perplexity is None else f"{perplexity:.2f}",
        str(row.published[PUBLISHED[name]]),
        *(
            mean_and_spread([r.scores[name] for r in results if name in r.scores])
            for name in COLUMNS
        ),
        ", ".join(str(result.seed) for result in results),
        f"{results[0].parameters:,}",
    ]
    return f"| {' | '.join(cells)} |"


def lines() -> list[str]:
    """Return a line per row that is measured at the small scale, in order."""
    measured: dict[str, list[Result]] = {}
    for result in shipped_results():
        if result.scale == "small":
            measured.setdefault(result.system, []).append(result)
    return [
        line(name, row, measured[str(row.system)])
        for name in PUBLISHED
        for row in table(name).rows
        if row.system in measured
    ]


def test_the_page_has_a_line_per_measured_row():
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\| `\w+/\w+` \|.*$", text, re.MULTILINE) == lines()


def test_the_page_repeats_the_notes_on_agreement():
    text = PAGE.read_text(encoding="utf-8")
    notes = agreement_notes(table("table3"), shipped_results())
    assert "\n".join(["```", *notes, "```"]) in text
