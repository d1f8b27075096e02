"""Names that users type, and the properties of rows."""

from __future__ import annotations

import json

import pytest

from t2t_repro.features.reproduction.paper_tables import TABLES, select
from t2t_repro.features.reproduction.paper_tables import find_table as table
from tests.golden import make_values

GOLDEN = json.loads(make_values.ROWS.read_text(encoding="utf-8"))


def test_tables_and_rows_keep_their_names_order_and_settings():
    """For a new row, run `python tests/golden/make_values.py`."""
    found = make_values.all_rows()
    assert found == GOLDEN
    assert [*found] == [*GOLDEN]
    for name, expected in GOLDEN.items():
        assert [*found[name]["rows"]] == [*expected["rows"]]


def test_no_two_tables_share_a_title():
    assert len({each.title for each in TABLES}) == len(TABLES)


def test_results_of_one_system_are_of_one_training():
    """Otherwise, one row would show another's scores."""
    settings_of: dict[str, set] = {}
    for each in TABLES:
        for row in each.rows:
            if row.system is not None:
                settings = (row.hparams_set, row.hparams, each.target_language)
                settings_of.setdefault(row.system, set()).add(settings)
    assert {len(found) for found in settings_of.values()} == {1}


@pytest.mark.parametrize("name", ["attention", "branches"])
def test_rows_without_published_scores_cite_a_section_and_are_marked(name):
    sections = {row.published["source"] for row in table(name).rows}
    assert (
        sections
        == {
            "attention": {"Vaswani et al., section 3.2.1", "Vaswani et al., section 4"},
            "branches": {f"Ahmed et al., section {x}" for x in ("3", "4.3", "4.5")},
        }[name]
    )
    assert "no paper prints these rows" in table(name).notes[0]
    assert "source: the text" in table(name).notes[1]


def test_a_selected_row_keeps_everything_else_of_its_table():
    whole, part = table("weighted"), select("weighted/transformer_small")
    assert [row.name for row in part.rows] == ["transformer_small"]
    assert (part.split, part.task) == ("test", "translation")
    assert (part.name, part.title) == (whole.name, whole.title)
    assert (part.columns, part.notes) == (whole.columns, whole.notes)
    assert select("weighted") is whole
