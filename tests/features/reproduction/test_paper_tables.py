"""Names that users type, and the properties of rows."""

from __future__ import annotations

import json

import pytest

from t2t_repro import catalogue
from t2t_repro.features.reproduction.paper_tables import TABLES, Row, find_row, select
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


def test_a_system_is_named_by_its_set_and_by_replaced_branch_weights():
    assert [row.system for row in table("randomisation").rows] == [
        "weighted_transformer_n2",
        "weighted_transformer_n2_random",
        "weighted_transformer_n2_uniform",
    ]
    assert Row("name", "label", {}).system is None
    others = [row for t in TABLES if t.name != "randomisation" for row in t.rows]
    assert all(row.system == row.hparams_set for row in others if not row.system_name)


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
            "branches": {"Ahmed et al., section 3", "Ahmed et al., section 4.5"},
        }[name]
    )
    assert "no paper prints these rows" in table(name).notes[0]
    assert "source: the text" in table(name).notes[1]


def test_a_control_is_its_published_row_with_dropout_one_tenth():
    assert len(table("dropout").rows) == 3
    for row in table("dropout").rows:
        of = str(row.published["control for"])
        _, published = find_row(of)
        own_set = row.hparams_set
        assert (own_set, row.train_steps) == (
            published.hparams_set,
            published.train_steps,
        )
        assert catalogue.hparams(own_set).layer_prepostprocess_dropout == 0.3
        assert row.hparams == "layer_prepostprocess_dropout=0.1"
        assert row.system == f"{own_set}_dropout1"


def test_systems_of_others_have_neither_steps_nor_hours():
    for each in TABLES:
        for row in each.rows:
            if row.hparams_set is None:
                assert (row.train_steps, row.train_hours) == (None, None)


def test_parsers_have_their_subwords_and_56_symbols():
    """26 constituents of the Penn Treebank open and close; XX; three special ones."""
    sizes = [row.vocab_sizes for row in table("table4").rows if row.hparams_set]
    assert sizes == [(16_000, 56), (32_000, 56)]


def test_a_selected_row_keeps_everything_else_of_its_table():
    whole, part = table("weighted"), select("weighted/transformer_small")
    assert [row.name for row in part.rows] == ["transformer_small"]
    assert (part.split, part.task) == ("test", "translation")
    assert (part.name, part.title) == (whole.name, whole.title)
    assert (part.columns, part.notes) == (whole.columns, whole.notes)
    assert select("weighted") is whole
