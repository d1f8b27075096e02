from __future__ import annotations

import itertools
import statistics

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results import tables
from t2t_repro.features.reproduction.paper_tables import find_table
from t2t_repro.features.reproduction.result_files import shipped_results
from tests.support.form_runs import table_rows

RESULTS = shipped_results()


def count(column: str, score: str) -> str:
    """Count the pairs of rows of Table 3 in the published order, one by one."""
    points = []
    for row in find_table("table3").rows:
        own = [x for x in RESULTS if (x.system, x.scale) == (row.system, "long")]
        published = row.published[column]
        if own and isinstance(published, float):
            points.append((published, statistics.mean(x.scores[score] for x in own)))
    least = 0.05 if column == "PPL" else 0.1
    pairs = [
        (a, b)
        for a, b in itertools.combinations(points, 2)
        if round(abs(a[0] - b[0]), 2) >= least
    ]
    same = sum((a[0] < b[0]) == (a[1] < b[1]) for a, b in pairs)
    return f"{same} of {len(pairs)}"


@pytest.mark.parametrize(
    ("column", "score"), [("PPL", "nll (dev)"), ("BLEU", "BLEU (dev+test)")]
)
def test_the_agreement_of_averages_is_beside_that_of_the_last_checkpoints(
    column, score
):
    rows = table_rows(tables.agreement(RESULTS, "long"))
    cells = next(row for row in rows if column in row.values())
    assert cells["pairs in order"] == count(column, score)
    assert cells["pairs in order, averages"] == count(column, f"{score}, averaged")


def test_a_scale_without_averages_has_no_column_for_them():
    assert "averages" not in tables.agreement(RESULTS, "small")
