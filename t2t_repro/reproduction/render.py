"""Tables as text: the published value beside ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from t2t_repro.models.sizes import (
    parameter_count,
    training_flops,
    wall_time_flops,
)
from t2t_repro.published import NUM_GPUS, SUSTAINED_FLOPS
from t2t_repro.reproduction.agreement import agreement_notes
from t2t_repro.reproduction.results import SCALES, Result
from t2t_repro.reproduction.tables import Cell, Row, Table
from t2t_repro.settings.hparams import HParams

TOKENS_A_STEP = 25_000  # of each side, section 5.1
SENTENCE_LENGTH = 30  # subwords, about WMT14's mean
NOT_MEASURED = "not yet measured"


def render(
    table: Table,
    hparams_of: Callable[[str], HParams],
    results: Sequence[Result] = (),
) -> str:
    """Write a table with its title, our sizes, our scores, its notes and agreement.

    Args:
        table: The table.
        hparams_of: Gives the hparams set of a name.
        results: What was measured.
    """
    headings = ["row", "system", *table.columns]
    own = any(row.hparams_set for row in table.rows)
    if own:
        headings += ["hparams set", "our params", "FLOPs by formula", "by hours"]
        headings.append("measured here")
    lines = [
        [
            row.name,
            row.label,
            *(_text(row.published.get(column), column) for column in table.columns),
            *(_own_cells(row, hparams_of, results) if own else ()),
        ]
        for row in table.rows
    ]
    return "\n".join(
        [
            f"{table.name}: {table.title}",
            *aligned([headings, *lines]),
            *table.notes,
            *agreement_notes(table, results),
        ]
    )


def _own_cells(
    row: Row, hparams_of: Callable[[str], HParams], results: Sequence[Result]
) -> list[str]:
    if row.hparams_set is None:
        return ["published only", "", "", "", ""]
    hparams = hparams_of(row.hparams_set)
    parameters = parameter_count(hparams, *row.vocab_sizes)
    flops = ""
    if row.train_steps is not None:
        tokens = row.train_steps * TOKENS_A_STEP
        symbols = row.vocab_sizes[1]
        flops = f"{training_flops(hparams, symbols, tokens, SENTENCE_LENGTH):.1e}"
    by_hours = ""
    if row.train_hours is not None:
        cost = wall_time_flops(row.train_hours, NUM_GPUS, SUSTAINED_FLOPS["P100"])
        by_hours = f"{cost:.1e}"
    measured = _measured_here(row, results)
    return [row.hparams_set, f"{parameters:,}", flops, by_hours, measured]


def _measured_here(row: Row, results: Sequence[Result]) -> str:
    measured = _at_every_scale(row.system, results)
    if row.baseline_set is None:
        return measured
    baseline = _at_every_scale(row.baseline_set, results)
    return f"Transformer: {baseline}. Weighted: {measured}"


def _at_every_scale(system: str | None, results: Sequence[Result]) -> str:
    own = [result for result in results if result.system == system]
    texts = [
        _measured(scale, of_scale)
        for scale in SCALES
        if (of_scale := [result for result in own if result.scale == scale])
    ]
    return "; ".join(texts) or NOT_MEASURED


def _measured(scale: str, results: Sequence[Result]) -> str:
    """Write the scores of a system at a scale, one result for each seed."""
    scores = ", ".join(
        f"{name} {_mean_and_spread([r.scores[name] for r in results])}"
        for name in results[0].scores
    )
    return f"{scale}: {scores} ({_provenance(results)})"


def _provenance(results: Sequence[Result]) -> str:
    seeds = ", ".join(str(result.seed) for result in results)
    minutes = statistics.mean(result.seconds for result in results) / 60
    word = "seed" if len(results) == 1 else "seeds"
    return f"{results[0].steps:,} steps, {minutes:.0f} min, {word} {seeds}"


def _mean_and_spread(values: Sequence[float]) -> str:
    mean = statistics.mean(values)
    if len(values) == 1:
        return f"{mean:.2f}"
    return f"{mean:.2f} ± {statistics.stdev(values):.2f}"


def _text(cell: Cell, column: str) -> str:
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


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows of cells as lines whose columns stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
