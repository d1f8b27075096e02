"""Tables of the page of results, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from t2t_repro.features.reproduction.comparison_report import SCORE_HEADINGS
from t2t_repro.features.reproduction.order_agreement import (
    FEWEST_ROWS,
    LETTERED_TABLE,
    group_agreements,
    group_of,
    p_value_cell,
)
from t2t_repro.features.reproduction.paper_tables import COMMENTED, Row, find_table
from t2t_repro.features.reproduction.report_writer import mean_and_spread
from t2t_repro.features.reproduction.result_files import NOT_YET, Result, averaged_score
from t2t_repro.text_tables import markdown

# Table -> its column with the published BLEU of the systems that are measured.
PUBLISHED_BLEU = {
    "table3": "BLEU",
    "aop": "BLEU",
    "sensitivity": "Weighted",
    "randomisation": "BLEU",
}
# Tables of other rows -> columns that hold what the paper
# says.
NEWER_TABLES = {
    "enfr": ("BLEU",),
    "attention": ("source",),
    "branches": ("text says", "source"),
    "dropout": ("control for",),
    "positions": ("control for",),
}
AVERAGED = averaged_score("")
# Score -> its heading, of the rows at each scale.
_ROW_SCORES = {
    "small": {
        "perplexity (dev)": "dev perplexity",
        "BLEU (dev)": "dev BLEU",
        "BLEU (test)": "test2016 BLEU",
    }
}
_ROW_SCORES["long"] = {
    **_ROW_SCORES["small"],
    "BLEU (dev+test)": "both",
    averaged_score("perplexity (dev)"): "dev perplexity, average",
    averaged_score("BLEU (dev+test)"): "both, average",
}


def measured_rows(results: Sequence[Result], scale: str) -> str:
    """Return the rows of the papers that are measured at a scale."""
    of_scale = [result for result in results if result.scale == scale]
    scores = _ROW_SCORES[scale]
    headings = ["row", "published PPL", "published BLEU", *_measured_headings(scores)]
    lines = [
        _row_line(name, row, own, [*scores])
        for name in PUBLISHED_BLEU
        for row in find_table(name).rows
        if (own := [x for x in of_scale if x.system == row.system])
    ]
    return "\n".join(markdown([headings, *lines]))


def _row_line(
    table: str, row: Row, results: Sequence[Result], scores: Sequence[str]
) -> list[str]:
    perplexity = row.published.get("PPL")
    return [
        f"`{table}/{row.name}`",
        f"{perplexity:.2f}" if isinstance(perplexity, float) else "",
        f"{row.published[PUBLISHED_BLEU[table]]}{row.mark}",
        *_measured_cells(results, scores),
    ]


def _measured_headings(scores: Mapping[str, str]) -> list[str]:
    """Return the headings of `_measured_cells`."""
    return [*scores.values(), "seeds", "parameters"]


def _measured_cells(results: Sequence[Result], scores: Sequence[str]) -> list[str]:
    """Return the scores, the number of seeds and the parameters of a system."""
    return [
        *_means(results, scores),
        str(len(results)),
        f"{results[0].parameters:,}",
    ]


def _means(results: Sequence[Result], scores: Sequence[str]) -> list[str]:
    """Return the mean and spread of scores; the cell of a missing one is empty."""
    return [
        mean_and_spread([x.scores[name] for x in results if name in x.scores])
        for name in scores
    ]


def newer_rows(results: Sequence[Result], scale: str) -> str:
    """Return the rows of `NEWER_TABLES` that are measured at a scale.

    Rows that are measured at no scale are in the table of the small one.
    """
    scores = _ROW_SCORES[scale]
    headings = ["row", "system", "published, or source", *_measured_headings(scores)]
    lines = []
    for name in NEWER_TABLES:
        for row in find_table(name).rows:
            own = [result for result in results if result.system == row.system]
            measured = [result for result in own if result.scale == scale]
            if measured or (scale == "small" and not own):
                lines.append(_newer_line(name, row, measured, [*scores]))
    return "\n".join(markdown([headings, *lines]))


def _newer_line(
    table: str, row: Row, results: Sequence[Result], scores: Sequence[str]
) -> list[str]:
    published = [
        f"{row.published[name] or ''}{row.mark}" for name in NEWER_TABLES[table]
    ]
    first = [f"`{table}/{row.name}`", row.label, ", ".join(filter(None, published))]
    if not results:
        return [*first, NOT_YET, *[""] * (len(scores) + 1)]
    return [*first, *_measured_cells(results, scores)]


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
    """Return the agreement with the order of Table 3 at a scale, per group of rows.

    The last columns have the agreement of averaged checkpoints, if they were scored.
    """
    headings = ["rows", "published", "ours", "pairs in order", "random orders", "p"]
    headings += ["pairs in order, averages", "p, averages"]
    lines = [*_agreement_lines(results, scale)]
    return "\n".join(markdown(without_empty_columns([headings, *lines])))


def _agreement_lines(results: Sequence[Result], scale: str) -> Iterator[list[str]]:
    found = group_agreements(
        find_table(LETTERED_TABLE), results, scale, group_of, FEWEST_ROWS
    )
    tests = {(group, score): test for group, _, score, test in found}
    before = ""
    for group, column, score, test in found:
        if score.endswith(AVERAGED):  # beside the last checkpoint
            continue
        averages = tests.get((group, averaged_score(score)))
        yield [
            group if group != before else "",
            column,
            score,
            f"{test.same} of {test.pairs}",
            f"{test.low} to {test.high}",
            p_value_cell(test.p_value, 2),
            f"{averages.same} of {averages.pairs}" if averages else "",
            p_value_cell(averages.p_value, 2) if averages else "",
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
