"""Names that users type, and the properties of rows, written a second time."""

from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.errors import UsageError
from t2t_repro.features.reproduction.paper_tables import TABLES, Row, find_row, select
from t2t_repro.features.reproduction.paper_tables import find_table as table

# Table -> row -> hparams set, or None for another author's system.
ROWS = {
    "table1": {
        "self_attention": None,
        "recurrent": None,
        "convolutional": None,
        "self_attention_restricted": None,
    },
    "table2": {
        "bytenet": None,
        "deep_att_posunk": None,
        "gnmt_rl": None,
        "convs2s": None,
        "moe": None,
        "deep_att_posunk_ensemble": None,
        "gnmt_rl_ensemble": None,
        "convs2s_ensemble": None,
        "transformer_base_model": "transformer_base",
        "transformer_big": "transformer_big",
    },
    "table3": {
        "base": "transformer_base",
        "a_h1": "transformer_base_a_h1",
        "a_h4": "transformer_base_a_h4",
        "a_h16": "transformer_base_a_h16",
        "a_h32": "transformer_base_a_h32",
        "b_dk16": "transformer_base_b_dk16",
        "b_dk32": "transformer_base_b_dk32",
        "c_n2": "transformer_base_c_n2",
        "c_n4": "transformer_base_c_n4",
        "c_n8": "transformer_base_c_n8",
        "c_d256": "transformer_base_c_d256",
        "c_d1024": "transformer_base_c_d1024",
        "c_dff1024": "transformer_base_c_dff1024",
        "c_dff4096": "transformer_base_c_dff4096",
        "d_dr0": "transformer_base_d_dr0",
        "d_dr2": "transformer_base_d_dr2",
        "d_ls0": "transformer_base_d_ls0",
        "d_ls2": "transformer_base_d_ls2",
        "e_learned": "transformer_base_e_learned",
        "big": "transformer_big",
    },
    "table4": {
        "vinyals_kaiser_et_al_2014_wsj_only": None,
        "petrov_et_al_2006_wsj_only": None,
        "zhu_et_al_2013_wsj_only": None,
        "dyer_et_al_2016_wsj_only": None,
        "transformer_4_layers_wsj_only": "transformer_parsing_wsj",
        "zhu_et_al_2013_semi_supervised": None,
        "huang_harper_2009_semi_supervised": None,
        "mcclosky_et_al_2006_semi_supervised": None,
        "vinyals_kaiser_et_al_2014_semi_supervised": None,
        "transformer_4_layers_semi_supervised": "transformer_parsing_semi",
        "luong_et_al_2015_multi_task": None,
        "dyer_et_al_2016_generative": None,
    },
    "aop": {
        "base": "transformer_base",
        "aop1": "transformer_base_aop1",
        "aop2": "transformer_base_aop2",
    },
    "weighted": {
        "transformer_small": "transformer_base",
        "weighted_transformer_small": "weighted_transformer_base",
        "transformer_large": "transformer_big",
        "weighted_transformer_large": "weighted_transformer_big",
        "bytenet": None,
        "deep_att_posunk": None,
        "gnmt_rl": None,
        "convs2s": None,
        "moe": None,
    },
    "sensitivity": {
        "n2": "weighted_transformer_n2",
        "n4": "weighted_transformer_n4",
        "base": "weighted_transformer_base",
        "n8": "weighted_transformer_n8",
        "big": "weighted_transformer_big",
    },
    "randomisation": {
        "learned": "weighted_transformer_n2",
        "random": "weighted_transformer_n2",
        "uniform": "weighted_transformer_n2",
    },
    "enfr": {
        "transformer_base_model": "transformer_base",
        "transformer_big": "transformer_big_enfr",
        "weighted_transformer_small": "weighted_transformer_base",
        "weighted_transformer_large": "weighted_transformer_big",
    },
    "attention": {
        "scaled_dk16": "transformer_base_b_dk16",
        "unscaled_dk16": "transformer_base_b_dk16",
        "additive_dk16": "transformer_base_b_dk16",
        "scaled_dk64": "transformer_base",
        "unscaled_dk64": "transformer_base",
        "additive_dk64": "transformer_base",
        "scaled_dk256": "transformer_base",
        "unscaled_dk256": "transformer_base",
        "additive_dk256": "transformer_base",
        "scaled_dk1024": "transformer_base",
        "unscaled_dk1024": "transformer_base",
        "additive_dk1024": "transformer_base",
        "restricted_r15": "transformer_base",
        "restricted_r31": "transformer_base",
    },
    "branches": {
        "simplex": "weighted_transformer_base",
        "softmax": "weighted_transformer_base",
        "top2": "weighted_transformer_base",
        "top4": "weighted_transformer_base",
    },
    "forms": {
        "transformer": "transformer_base",
        "transformer_attention_dropout": "transformer_base",
        "weighted": "weighted_transformer_base",
        "random_start": "weighted_transformer_base",
        "initial_gain": "weighted_transformer_base",
        "shared": "weighted_transformer_base",
        "per_branch": "weighted_transformer_base",
        "self_attention": "weighted_transformer_base",
        "around": "weighted_transformer_base",
        "around_near_uniform": "weighted_transformer_base",
        "around_fixed": "weighted_transformer_base",
        "around_unit_gain": "weighted_transformer_base",
        "around_initial_gain": "weighted_transformer_base",
        "around_self_attention": "weighted_transformer_base",
        "around_one_network": "weighted_transformer_base",
        "inside": "weighted_transformer_base",
    },
    "dropout": {
        "big": "transformer_big",
        "weighted_n8": "weighted_transformer_n8",
        "weighted_big": "weighted_transformer_big",
    },
    "text": {
        "base_step_seconds": None,
        "big_step_seconds": None,
        "pairs_ende": None,
        "pairs_enfr": None,
        "big_enfr_bleu": None,
        "aop_step_time": None,
        "added_weights": None,
        "fewer_iterations": None,
        "branch_weight_spread": None,
    },
}
# Table -> (split of WMT 2014 that it reports, task).
REPORTED = {
    "table1": ("dev", "layers"),
    "table2": ("test", "translation"),
    "table3": ("dev", "translation"),
    "table4": ("dev", "parsing"),
    "aop": ("dev", "translation"),
    "weighted": ("test", "translation"),
    "sensitivity": ("dev", "translation"),
    "randomisation": ("dev", "translation"),
    "enfr": ("test", "translation"),
    "attention": ("dev", "translation"),
    "branches": ("dev", "translation"),
    "forms": ("dev", "translation"),
    "dropout": ("dev", "translation"),
    "text": ("dev", "text"),
}


def test_the_tables_and_rows_that_a_user_types_have_their_names_and_sets():
    found = {
        each.name: {row.name: row.hparams_set for row in each.rows} for each in TABLES
    }
    assert found == ROWS
    # The order must be equal, too.
    assert [*found] == [*ROWS]
    assert [[*rows] for rows in found.values()] == [[*rows] for rows in ROWS.values()]


def test_every_table_reports_its_split_of_its_task():
    assert {t.name: (t.split, t.task) for t in TABLES} == REPORTED


def test_no_two_tables_share_a_title():
    assert len({each.title for each in TABLES}) == len(TABLES)


def test_the_weighted_transformers_rows_have_their_steps():
    steps = {
        name: [row.train_steps for row in table(name).rows if row.train_steps]
        for name in ("weighted", "sensitivity", "randomisation", "enfr", "branches")
    }
    assert steps == {
        "enfr": [100_000, 300_000, 60_000, 250_000],
        "branches": [60_000, 60_000, 60_000, 60_000],
        "weighted": [100_000, 60_000, 300_000, 250_000],
        "sensitivity": [60_000, 60_000, 60_000, 60_000, 250_000],
        "randomisation": [60_000, 60_000, 60_000],
    }


def test_a_row_of_the_sensitivity_analysis_is_beside_its_plain_transformer():
    assert [row.baseline_set for row in table("sensitivity").rows] == [
        "transformer_base_c_n2",
        "transformer_base_c_n4",
        "transformer_base",
        "transformer_base_c_n8",
        "transformer_big",
    ]
    others = [row for t in TABLES if t.name != "sensitivity" for row in t.rows]
    assert {row.baseline_set for row in others} == {None}


def test_a_system_is_named_by_its_set_and_by_replaced_branch_weights():
    assert [row.system for row in table("randomisation").rows] == [
        "weighted_transformer_n2",
        "weighted_transformer_n2_random",
        "weighted_transformer_n2_uniform",
    ]
    assert Row("name", "label", {}).system is None
    others = [row for t in TABLES if t.name != "randomisation" for row in t.rows]
    assert all(row.system == row.hparams_set for row in others if not row.system_name)


# Row -> its changes to its set, and the name of its result files.
CHANGED = {
    "unscaled_dk16": (
        "attention_compatibility=dot_product",
        "transformer_base_unscaled_dk16",
    ),
    "scaled_dk256": ("attention_key_channels=2048", "transformer_base_scaled_dk256"),
    "additive_dk1024": (
        "attention_compatibility=additive,attention_key_channels=8192",
        "transformer_base_additive_dk1024",
    ),
    "restricted_r31": (
        "self_attention_type=restricted,attention_neighbourhood=31",
        "transformer_base_restricted_r31",
    ),
    "softmax": (
        "branch_normalization=softmax",
        "weighted_transformer_base_softmax",
    ),
    "top4": ("branch_top_k=4", "weighted_transformer_base_top4"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_row_that_changes_its_set_has_a_system_of_its_own(name):
    rows = [*table("attention").rows, *table("branches").rows]
    (row,) = [row for row in rows if row.name == name]
    assert (row.hparams, row.system) == CHANGED[name]


def test_the_rows_to_french_have_result_files_of_their_own():
    assert [row.system for row in table("enfr").rows] == [
        "transformer_base_enfr",
        "transformer_big_enfr",
        "weighted_transformer_base_enfr",
        "weighted_transformer_big_enfr",
    ]
    assert {t.name: t.target_language for t in TABLES if t.target_language != "de"} == {
        "enfr": "fr"
    }


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


def test_translators_to_french_share_32000_subwords():
    assert {row.vocab_sizes for row in table("enfr").rows} == {(32_000, 32_000)}


@pytest.mark.parametrize(
    "name", [name for name in ROWS if name not in ("table4", "enfr")]
)
def test_translators_share_37000_subwords(name):
    assert {row.vocab_sizes for row in table(name).rows} == {(37_000, 37_000)}


def test_a_row_is_found_by_its_name_alone():
    found = table("table3")
    assert found.row("a_h4").label == "(A) h=4"
    assert found.row("A_H4") is None
    assert find_row("table3/a_h4") == (found, found.row("a_h4"))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("table33/base", "Did you mean table3"),
        ("table3/a_h2", "Did you mean a_h"),
        ("table3", "expected TABLE/ROW"),
    ],
)
def test_an_unknown_row_is_refused(name, answer):
    with pytest.raises(UsageError, match=answer):
        find_row(name)


def test_a_selected_row_keeps_everything_else_of_its_table():
    whole, part = table("weighted"), select("weighted/transformer_small")
    assert [row.name for row in part.rows] == ["transformer_small"]
    assert (part.split, part.task) == ("test", "translation")
    assert (part.name, part.title) == (whole.name, whole.title)
    assert (part.columns, part.notes) == (whole.columns, whole.notes)
    assert select("weighted") is whole
