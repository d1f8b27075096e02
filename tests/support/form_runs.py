"""Examples of training runs of the readings of the Weighted Transformer."""

from __future__ import annotations

import dataclasses

from t2t_repro.features.reproduction.paper_tables import find_table
from tests.support.curve import CURVE
from tests.support.result import RESULT

ROWS = find_table("forms").rows
PLAIN, AROUND, SHARED = (
    next(str(row.system) for row in ROWS if row.name == name)
    for name in ("transformer", "around", "shared")
)


def table_rows(text: str) -> list[dict[str, str]]:
    """Return the cells of each row of a table in Markdown, by heading."""
    headings, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
    )
    return [dict(zip(headings, line, strict=True)) for line in lines[1:]]


def result(system: str, seed: int, nll: float, bleu: float = 30.0):
    scores = {
        "nll (dev)": nll,
        "BLEU (dev)": bleu,
        "BLEU (test)": bleu + 2,
        "BLEU (dev+test)": bleu + 1,
        "nll (dev), averaged": nll - 0.5,
        "BLEU (dev+test), averaged": bleu + 2,
    }
    return dataclasses.replace(
        RESULT, system=system, scale="long", seed=seed, scores=scores
    )


RESULTS = [
    result(PLAIN, 1, 2.0),
    result(PLAIN, 2, 2.125),
    result(AROUND, 1, 2.5, 28.0),
    result(AROUND, 2, 2.75, 28.5),
    result(SHARED, 1, 2.25, 31.0),
]
# With four degrees of freedom, as two rows have five seeds.
SEEDS = [1, 2, 3, 4, 5]
PLAIN_NLL = [2.0, 2.125, 2.25, 2.0625, 2.1875]
AROUND_NLL = [2.125, 2.375, 2.25, 2.1875, 2.375]
SEVERAL = [
    *map(result, [PLAIN] * 5, SEEDS, PLAIN_NLL),
    *map(result, [AROUND] * 5, SEEDS, AROUND_NLL, [28.0, 28.5, 29.0, 28.25, 28.0]),
    result(SHARED, 1, 2.25, 31.0),
]
CURVES = [
    dataclasses.replace(
        CURVE, name=f"{name}-long", seed=seed, steps=(100, 200), nll=nll
    )
    for name, seed, nll in [
        (PLAIN, 1, (3.0, 2.0)),
        (PLAIN, 2, (3.0, 2.0)),
        (AROUND, 1, (3.0, 2.5)),
        (AROUND, 2, (3.0, 2.25)),
        (AROUND, 3, (3.0, 2.0)),
    ]
]
