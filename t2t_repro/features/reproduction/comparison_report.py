"""Report on a table: published values, our scores, sizes and costs."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from t2t_repro.features.reproduction.order_agreement import agreement_notes
from t2t_repro.features.reproduction.paper_tables import (
    NUM_GPUS,
    P100_FLOPS,
    TOKENS_PER_STEP,
    Cell,
    Row,
    Table,
)
from t2t_repro.features.reproduction.rankings import ranking_blocks, ranking_data
from t2t_repro.features.reproduction.recipes import REDUCED_SIZE
from t2t_repro.features.reproduction.report_writer import (
    Block,
    Column,
    Report,
    make_block,
    mean_and_spread,
    published_text,
    table_report,
)
from t2t_repro.features.reproduction.result_files import (
    NO_COURSE,
    SCALES,
    Course,
    Result,
)
from t2t_repro.features.reproduction.text_report import text_report
from t2t_repro.models.estimates import parameter_count, training_flops, wall_time_flops
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
    yield from _expand_scales(table, line, row.system, results)
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
        yield from _expand_scales(table, baseline, row.baseline_set, results)


def _expand_scales(
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
    course: Course = NO_COURSE,
) -> Report:
    """Report on a table: published values and our scores, then sizes and costs.

    Results of the long scale add rankings, and agreement per group of rows.

    Args:
        table: The table.
        hparams_of: Function from the name of an hparams set to the set.
        results: Results of any systems.
        course: Numbers about the course of training runs, for the table `text`.
    """
    if table.task == "text":
        return text_report(table, hparams_of, results, course)
    lines = compare(table, hparams_of, results)
    notes = [*table.notes, *agreement_notes(table, results)]
    own = [line for line in lines if line.hparams_set is not None]
    blocks = [
        make_block(_published_columns(table), table.rows),
        *_own_blocks(table, own),
        *ranking_blocks(table, results),
    ]
    data = [dataclasses.asdict(line) for line in lines]
    report = table_report(table, blocks, data, notes, split=table.split)
    ranked = ranking_data(table, results)
    return dataclasses.replace(report, data={**report.data, **ranked})


def _own_blocks(table: Table, lines: Sequence[Line]) -> list[Block]:
    """Return our scores, and our costs beside those of the paper's sizes."""
    if not lines:
        return []
    return [
        make_block(_score_columns(table), lines, _scope(table, lines)),
        make_block(_COST_COLUMNS, lines, _COST_TITLE),
    ]


def _scope(table: Table, lines: Sequence[Line]) -> str:
    """Return a note on the scores that cannot be compared with the published ones."""
    scales = dict.fromkeys(line.measured.scale for line in lines if line.measured)
    reduced = [scale for scale in scales if scale != "paper"]
    if not reduced:
        return "Ours:"
    size = "smaller parsers" if table.task == "parsing" else REDUCED_SIZE
    return (
        f"Ours, {' and '.join(reduced)}: {size}, {table.text(reduced[0])}. Compare "
        "these rows with one another, not with the published scores:"
    )


def _published_columns(table: Table) -> list[Column[Row]]:
    return [
        Column[Row]("row", lambda row: row.name, is_number=False),
        Column[Row]("system", lambda row: f"{row.label}{row.mark}", is_number=False),
        *(_published_column(table, name) for name in table.columns),
    ]


def _score_columns(table: Table) -> list[Column[Line]]:
    has_baselines = any(row.baseline_set for row in table.rows)
    system = Column[Line]("system", lambda line: line.label, is_number=False)
    return [
        _ROW,
        *([system] if has_baselines else []),
        _measured_column("our text", lambda ours: ours.text, is_number=False),
        _measured_column("our params", lambda ours: f"{ours.parameters:,}"),
        *itertools.starmap(_score_column, SCORE_HEADINGS[table.task].items()),
        _RUNS,
    ]


def _hparams_set(line: Line) -> str:
    """Return the name of the set; `--scale paper` prints the changes of a row."""
    return f"{line.hparams_set}{', changed' if line.hparams else ''}"


def _published_column(table: Table, name: str) -> Column[Row]:
    return Column(
        name,
        lambda row: published_text(row.published[name], name),
        is_number=not any(isinstance(row.published[name], str) for row in table.rows),
    )


def _score_column(score: str, heading: str) -> Column[Line]:
    return _measured_column(
        heading, lambda ours: mean_and_spread(ours.scores.get(score, ()))
    )


def _runs(line: Line) -> str:
    if line.hparams_set is None:
        return ""
    if line.measured is None:
        return NOT_MEASURED
    return f"{len(line.measured.seeds)} {line.measured.scale}"


def _measured_column(
    heading: str, text: Callable[[Measured], str], is_number: bool = True
) -> Column[Line]:
    """Return a column that is empty for lines without our results."""
    return Column(
        heading,
        lambda line: "" if line.measured is None else text(line.measured),
        is_number,
    )


def _full_size_parameters(line: Line) -> str:
    count = line.full_size_parameters
    return "" if count is None else f"{count:,}"


def _scientific(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


_ROW = Column[Line]("row", lambda line: line.row, is_number=False)
_RUNS = Column("runs", _runs)
_COST_TITLE = (
    "Params and FLOPs at the paper's size; runs, steps, minutes and seeds of ours:"
)
_COST_COLUMNS = [
    _ROW,
    Column[Line]("hparams set", _hparams_set, False),
    Column[Line]("params at full size", _full_size_parameters),
    Column[Line]("FLOPs by formula", lambda line: _scientific(line.flops_by_formula)),
    Column[Line]("by hours", lambda line: _scientific(line.flops_by_hours)),
    _RUNS,
    _measured_column("our steps", lambda ours: f"{ours.steps:,}"),
    _measured_column("minutes", lambda ours: f"{ours.minutes:.0f}"),
    _measured_column("seeds", lambda ours: ", ".join(map(str, ours.seeds)), False),
]
