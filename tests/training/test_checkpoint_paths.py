from __future__ import annotations

import errno
import os

import pytest

from t2t_repro.errors import UserError
from t2t_repro.training.checkpoint_paths import (
    all_checkpoints,
    find_checkpoint,
    last_checkpoints,
    latest_step,
    run_checkpoints,
    step_in_name,
)


@pytest.mark.parametrize("end", ["", ".index", ".data-00000-of-00001"])
def test_a_checkpoint_is_found_by_the_path_of_any_of_its_files(run, end):
    path = str(run / "model.ckpt-200")
    assert find_checkpoint("elsewhere", path + end) == path


@pytest.mark.parametrize(
    ("which", "next_step"),
    [("latest", "t2t train"), ("best", "t2t train"), ("averaged", "t2t average")],
)
def test_a_missing_checkpoint_names_the_command_that_makes_it(
    tmp_path, which, next_step
):
    with pytest.raises(UserError, match=f"no {which} checkpoint in .*`{next_step}"):
        find_checkpoint(tmp_path, which)


def test_a_path_without_a_checkpoint_says_what_is_expected(run):
    with pytest.raises(UserError, match="expected latest, best, averaged, or"):
        find_checkpoint(run, str(run / "model.ckpt-150"))


def test_only_whole_names_with_a_step_are_checkpoints(tmp_path):
    for name in ("model.ckpt-9", "model.ckpt-10", "model.ckpt-8.damaged", "model.ckpt"):
        (tmp_path / f"{name}.index").touch()
    (tmp_path / "model.ckpt-11.data-00000-of-00001").touch()
    found = [str(tmp_path / f"model.ckpt-{step}") for step in (9, 10)]
    assert all_checkpoints(tmp_path) == found
    assert latest_step(tmp_path) == 10
    assert latest_step(tmp_path / "empty") == 0


def test_a_renamed_checkpoint_has_no_step():
    assert step_in_name("run/model.ckpt-70") == 70
    assert step_in_name("run-3/final") is None
    assert step_in_name("run/averaged-70") is None


def test_the_last_checkpoints_are_the_newest_ones(tmp_path):
    for step in (9, 10, 100):
        (tmp_path / f"model.ckpt-{step}.index").touch()
    newest = [str(tmp_path / f"model.ckpt-{step}") for step in (10, 100)]
    assert last_checkpoints(tmp_path, 2) == newest
    with pytest.raises(UserError, match=r"received last=4.*of step 9, 10, 100"):
        last_checkpoints(tmp_path, 4)


def test_a_run_has_its_own_checkpoints_the_best_ones_and_the_average(tmp_path):
    names = ["model.ckpt-9", "model.ckpt-40", "best/model.ckpt-7"]
    names += ["averaged/model.ckpt-8", "best_models/model.ckpt-6"]
    for name in names:
        path = tmp_path / f"{name}.index"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert run_checkpoints(tmp_path) == [str(tmp_path / name) for name in names]
    assert run_checkpoints(tmp_path / "nowhere") == []


@pytest.mark.parametrize("find", [all_checkpoints, find_checkpoint, latest_step])
def test_a_folder_that_cannot_be_listed_does_not_count_as_empty(run, monkeypatch, find):
    """Permissions do not stop root, who may run the tests."""

    def refuse(folder="."):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UserError, match=r"^cannot list .*Permission denied"):
        find(run)
