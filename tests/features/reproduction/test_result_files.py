from __future__ import annotations

import dataclasses
import os
import sys

import pytest

from t2t_repro.errors import UserError
from t2t_repro.features.reproduction.paper_tables import TABLES
from t2t_repro.features.reproduction.result_files import (
    hardware,
    read_result,
    results_with,
    shipped_results,
)
from tests.support.result import RESULT


def test_a_result_is_read_as_it_was_written(tmp_path):
    path = RESULT.save(tmp_path)
    assert path.name == "transformer_base_a_h1-small-1.json"
    assert read_result(path.read_text()) == RESULT


def test_two_rows_of_a_system_keep_their_scores_of_different_splits(tmp_path):
    dev = dataclasses.replace(RESULT, scores={"BLEU (dev)": 25.0}, commands=("a", "b"))
    test = dataclasses.replace(
        RESULT, scores={"BLEU (test)": 27.0}, commands=("a", "c")
    )
    dev.save(tmp_path)
    found = read_result(test.save(tmp_path).read_text())
    assert found.scores == {"BLEU (dev)": 25.0, "BLEU (test)": 27.0}
    assert found.commands == ("a", "b", "c")


@pytest.mark.parametrize(
    "changes",
    [{"steps": 7}, {"data": {"train.en": "0"}}, {"scores": {"BLEU (dev)": 1.0}}],
    ids=str,
)
def test_a_result_of_another_training_or_of_the_same_scores_is_replaced(
    tmp_path, changes
):
    before = dataclasses.replace(RESULT, scores={"BLEU (dev)": 25.0}, commands=("a",))
    scores = {"BLEU (dev)": 26.0} if "scores" in changes else {"BLEU (test)": 27.0}
    after = dataclasses.replace(RESULT, scores=scores, commands=("b",))
    dataclasses.replace(before, **changes).save(tmp_path)
    assert read_result(after.save(tmp_path).read_text()) == after


def test_a_damaged_result_is_replaced(tmp_path):
    (tmp_path / RESULT.file_name).write_text("{")
    assert read_result(RESULT.save(tmp_path).read_text()) == RESULT


@pytest.mark.parametrize("result", shipped_results(), ids=lambda r: r.file_name)
def test_a_shipped_result_records_how_it_was_measured(result):
    systems = {row.system for table in TABLES for row in table.rows}
    assert result.system in systems
    if "jax" not in result.versions:  # see test_commands.py
        assert f"--train_steps {result.steps} " in result.commands[0]
    assert all(len(digest) == 64 for digest in result.data.values())


def test_results_of_a_folder_are_added_and_replace_those_of_the_package(tmp_path):
    (tmp_path / "hparams.json").write_text("{}")
    RESULT.save(tmp_path)
    shipped = shipped_results()[0]
    own = dataclasses.replace(shipped, steps=7)
    own.save(tmp_path)
    found = results_with(tmp_path)
    assert RESULT in found
    assert own in found
    assert shipped not in found
    assert results_with(None) == shipped_results()


@pytest.mark.parametrize("text", ["{", "{}", '{"commands": [], "other": 1}', "[]"])
def test_a_file_that_is_not_a_result_is_a_user_error(tmp_path, text):
    (tmp_path / "x-small-1.json").write_text(text)
    with pytest.raises(UserError, match="expected files that"):
        results_with(tmp_path)


def test_results_on_the_same_text_are_of_one_recipe():
    """Otherwise, their scores could not be compared."""
    recipes = {}
    for result in shipped_results():
        text = (result.scale, *sorted(result.data))
        recipe = (result.steps, *sorted(result.data.values()))
        assert recipes.setdefault(text, recipe) == recipe


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux assigns cores")
def test_hardware_counts_the_cores_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert hardware().startswith("4 x ")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert hardware().startswith("1 of 4 x ")
