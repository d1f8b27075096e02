"""Tables of the page of results, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t2t_repro.reproduction.agreement import (
    FEWEST_ROWS,
    LETTERED_TABLE,
    group_agreements,
    group_of,
    p_value_cell,
)
from t2t_repro.reproduction.comparison_report import SCORE_HEADINGS
from t2t_repro.reproduction.lookup import find_table
from t2t_repro.reproduction.report import mean_and_spread
from t2t_repro.reproduction.results import NOT_YET, Result, averaged_score
from t2t_repro.reproduction.table1.orders import COMMENTED
from t2t_repro.reproduction.tables import Row
from t2t_repro.text_tables import markdown

# Table -> its column with the published BLEU of the systems that are measured.
PUBLISHED_BLEU = {
    "table3": "BLEU",
    "aop": "BLEU",
    "sensitivity": "Weighted",
    "randomisation": "BLEU",
}
_ROW_HEADINGS = [
    *("row", "published PPL", "published BLEU", "dev perplexity", "dev BLEU"),
    *("test2016 BLEU", "seeds", "parameters"),
]
# Tables whose rows are all shown, measured or not -> columns that hold what the paper
# says.
NEWER_TABLES = {
    "enfr": ("BLEU",),
    "attention": ("source",),
    "branches": ("text says", "source"),
    "dropout": ("control for",),
}
AVERAGED = averaged_score("")
_ROW_SCORES = ("perplexity (dev)", "BLEU (dev)", "BLEU (test)")


def measured_rows(results: Sequence[Result], scale: str) -> str:
    """Return the rows of the papers that are measured at a scale."""
    of_scale = [result for result in results if result.scale == scale]
    lines = [
        _row_line(name, row, own)
        for name in PUBLISHED_BLEU
        for row in find_table(name).rows
        if (own := [x for x in of_scale if x.system == row.system])
    ]
    if not lines:
        return f"{NOT_YET.capitalize()}."
    return "\n".join(markdown([_ROW_HEADINGS, *lines]))


def _row_line(table: str, row: Row, results: Sequence[Result]) -> list[str]:
    perplexity = row.published.get("PPL")
    return [
        f"`{table}/{row.name}`",
        f"{perplexity:.2f}" if isinstance(perplexity, float) else "",
        str(row.published[PUBLISHED_BLEU[table]]),
        *_measured_cells(results),
    ]


def _measured_cells(results: Sequence[Result]) -> list[str]:
    """Return the scores, the number of seeds and the parameters of a system."""
    return [
        *_means(results, _ROW_SCORES),
        str(len(results)),
        f"{results[0].parameters:,}",
    ]


def _means(results: Sequence[Result], scores: Sequence[str]) -> list[str]:
    """Return the mean and spread of scores; the cell of a missing one is empty."""
    return [
        mean_and_spread([x.scores[name] for x in results if name in x.scores])
        for name in scores
    ]


def newer_rows(results: Sequence[Result]) -> str:
    """Return every row of `NEWER_TABLES` at the small scale, measured or not."""
    headings = ["row", "system", "published, or source", *_ROW_HEADINGS[3:]]
    small = [result for result in results if result.scale == "small"]
    lines = [
        _newer_line(name, row, [x for x in small if x.system == row.system])
        for name in NEWER_TABLES
        for row in find_table(name).rows
    ]
    return "\n".join(markdown([headings, *lines]))


def _newer_line(table: str, row: Row, results: Sequence[Result]) -> list[str]:
    published = [str(row.published[name] or "") for name in NEWER_TABLES[table]]
    first = [f"`{table}/{row.name}`", row.label, ", ".join(filter(None, published))]
    if not results:
        return [*first, NOT_YET, *[""] * (len(_ROW_SCORES) + 1)]
    return [*first, *_measured_cells(results)]


def parsers(results: Sequence[Result]) -> str:
    """Return our parsers of Table 4 at the small scale, measured or not."""
    scores = SCORE_HEADINGS["parsing"]
    headings = [
        "row",
        "training in the paper",
        "published F1",
        *scores.values(),
        "seeds",
    ]
    lines = []
    for row in find_table("table4").rows:
        if row.hparams_set is None:
            continue
        own = [x for x in results if (x.system, x.scale) == (row.system, "small")]
        lines.append(
            [
                f"`table4/{row.name}`",
                *(str(row.published[name]) for name in ("training", "F1")),
                *(_means(own, [*scores]) if own else [NOT_YET, "", ""]),
                str(len(own) or ""),
            ]
        )
    return "\n".join(markdown([headings, *lines]))


def agreement(results: Sequence[Result], scale: str) -> str:
    """Return the agreement with the order of Table 3 at a scale, per group of rows."""
    headings = ["rows", "published", "ours", "pairs in order", "random orders", "p"]
    lines = [*_agreement_lines(results, scale)]
    return "\n".join(markdown([headings, *lines])) if lines else f"{NOT_YET}."


def _agreement_lines(results: Sequence[Result], scale: str) -> Iterator[list[str]]:
    before = ""
    for group, column, score, test in group_agreements(
        find_table(LETTERED_TABLE), results, scale, group_of, FEWEST_ROWS
    ):
        if score.endswith(AVERAGED):  # the same systems again
            continue
        yield [
            group if group != before else "",
            column,
            score,
            f"{test.same} of {test.pairs}",
            f"{test.low} to {test.high}",
            p_value_cell(test.p_value, 2),
        ]
        before = group


def commented_rows() -> str:
    """Return the rows of Table 1 that only comments of the LaTeX source hold."""
    headings = ["layer", "complexity", "sequential", "path", "line"]
    lines = [
        [
            layer.label,
            *(
                order if order == "infinity" else f"O({order})"
                for order in (layer.complexity, layer.sequential, layer.path)
            ),
            str(line),
        ]
        for line, layer in COMMENTED.items()
    ]
    return "\n".join(markdown([headings, *lines]))


def without_empty_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Leave out the columns of a table that hold a heading alone."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    return [list(row) for row in zip(*columns, strict=True)]
