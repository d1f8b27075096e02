"""Lines of a table: published values, our scores, sizes and costs."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from t2t_repro.features.reproduction.papers.facts import (
    NUM_GPUS,
    P100_FLOPS,
    TOKENS_PER_STEP,
)
from t2t_repro.features.reproduction.results import SCALES, Result
from t2t_repro.features.reproduction.tables import Cell, Row, Table
from t2t_repro.models.sizes import parameter_count, training_flops, wall_time_flops
from t2t_repro.settings.hparams import HParams

SENTENCE_LENGTH = 30  # subwords, about WMT14's mean
BASELINE = "plain Transformer"


@dataclasses.dataclass(frozen=True)
class Measured:
    """Results of one system at one scale.

    Attributes:
        scale: "small", "long" or "paper".
        text: Name of the text.
        parameters: Number of parameters of the trained model.
        seeds: Random seed of each result.
        steps: Number of updates.
        minutes: Mean training time.
        scores: Value of each result by name of the score.
    """

    scale: str
    text: str
    parameters: int
    seeds: tuple[int, ...]
    steps: int
    minutes: float
    scores: Mapping[str, tuple[float, ...]]


@dataclasses.dataclass(frozen=True)
class Line:
    """A system of a table at one scale.

    Attributes:
        row: Name of the row.
        label: Name of the system.
        published: Printed value by column.
        hparams_set: Set that builds the system; None if it is not ours.
        hparams: Changes to the set, in the form of `--hparams`.
        full_size_parameters: Number of parameters of the set, at the paper's vocabulary
            size. Our results may be those of smaller models.
        flops_by_formula: Operations of the paper's training, counted.
        flops_by_hours: Operations of the paper's training, estimated from its duration
            as in section 6.1.
        measured: Our results, or None.
    """

    row: str
    label: str
    published: Mapping[str, Cell]
    hparams_set: str | None = None
    hparams: str = ""
    full_size_parameters: int | None = None
    flops_by_formula: float | None = None
    flops_by_hours: float | None = None
    measured: Measured | None = None


def compare(
    table: Table,
    hparams_of: Callable[[str], HParams],
    results: Sequence[Result] = (),
) -> list[Line]:
    """Return the lines of a table, one per row, system and scale.

    Args:
        table: The table.
        hparams_of: Function from the name of an hparams set to the set.
        results: Results of any systems.
    """
    return [
        line for row in table.rows for line in _lines(table, row, hparams_of, results)
    ]


def _lines(
    table: Table,
    row: Row,
    hparams_of: Callable[[str], HParams],
    results: Sequence[Result],
) -> Iterator[Line]:
    line = Line(row.name, row.label, row.published)
    if row.hparams_set is None:
        yield line
        return
    hparams = hparams_of(row.hparams_set).parse(row.hparams)
    line = dataclasses.replace(
        line,
        hparams_set=row.hparams_set,
        hparams=row.hparams,
        full_size_parameters=parameter_count(hparams, *row.vocab_sizes),
        flops_by_formula=_flops_by_formula(row, hparams),
        flops_by_hours=_flops_by_hours(row),
    )
    yield from _at_every_scale(table, line, row.system, results)
    if row.baseline_set is not None:
        baseline = Line(
            row.name,
            BASELINE,
            {},
            row.baseline_set,
            full_size_parameters=parameter_count(
                hparams_of(row.baseline_set), *row.vocab_sizes
            ),
        )
        yield from _at_every_scale(table, baseline, row.baseline_set, results)


def _at_every_scale(
    table: Table, line: Line, system: str | None, results: Sequence[Result]
) -> Iterator[Line]:
    """Yield a copy of the line per scale with results, or the line itself."""
    own = [result for result in results if result.system == system]
    measured = [
        summarize([result for result in own if result.scale == scale], table)
        for scale in SCALES
        if any(result.scale == scale for result in own)
    ]
    for each in measured or [None]:
        yield dataclasses.replace(line, measured=each)


def summarize(results: Sequence[Result], table: Table) -> Measured:
    """Summarize the results of one system of a table at one scale."""
    names = dict.fromkeys(name for result in results for name in result.scores)
    return Measured(
        scale=results[0].scale,
        text=table.text(results[0].scale),
        parameters=results[0].parameters,
        seeds=tuple(result.seed for result in results),
        steps=results[0].steps,
        minutes=statistics.mean(result.seconds for result in results) / 60,
        scores={
            name: tuple(
                result.scores[name] for result in results if name in result.scores
            )
            for name in names
        },
    )


def _flops_by_formula(row: Row, hparams: HParams) -> float | None:
    if row.train_steps is None:
        return None
    tokens = row.train_steps * TOKENS_PER_STEP
    return training_flops(hparams, row.vocab_sizes[1], tokens, SENTENCE_LENGTH)


def _flops_by_hours(row: Row) -> float | None:
    if row.train_hours is None:
        return None
    return wall_time_flops(row.train_hours, NUM_GPUS, P100_FLOPS)
