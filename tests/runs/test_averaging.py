"""`average` hands everything it receives to the function that reads it."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from t2t_repro.errors import UserError
from t2t_repro.files import folder_lock
from t2t_repro.runs import run_checkpoints
from t2t_repro.runs.run import Run
from t2t_repro.runs.run_checkpoints import paths_to_average
from t2t_repro.training import checkpoints
from t2t_repro.training.checkpoint_paths import step_of
from tests.runs.test_run import make_run
from tests.support.recorder import record, spy


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a run with checkpoints of the steps 7, 30 and 200."""
    make_run().save(tmp_path)
    for step in (200, 30, 7):
        (tmp_path / f"model.ckpt-{step}.index").touch()
    return tmp_path


@pytest.fixture
def averaged(monkeypatch):
    return record(monkeypatch, run_checkpoints, "average_paths", "result")


def paths_in(folder, *steps):
    return [str(folder / f"model.ckpt-{step}") for step in steps]


def test_the_last_checkpoints_of_the_run_are_averaged(folder, averaged):
    assert run_checkpoints.average(folder, 2) == "result"
    assert averaged.call == {
        "run": make_run(),
        "output_dir": folder,
        "paths": paths_in(folder, 30, 200),
    }


def test_as_many_checkpoints_as_there_are_can_be_averaged(folder, averaged):
    run_checkpoints.average(folder, 3)
    assert averaged.call["paths"] == paths_in(folder, 7, 30, 200)
    with pytest.raises(UserError, match=r"has 3 checkpoint\(s\), of step 7, 30, 200"):
        run_checkpoints.average(folder, 4)


def test_five_checkpoints_are_averaged_by_default(folder, averaged):
    with pytest.raises(UserError, match="5"):
        run_checkpoints.average(folder)
    for step in (8, 9, 300):
        (folder / f"model.ckpt-{step}.index").touch()
    run_checkpoints.average(folder)
    assert averaged.call["paths"] == paths_in(folder, 8, 9, 30, 200, 300)


@pytest.mark.parametrize("given", [None, "package"])
def test_the_catalogue_is_loaded_with_the_given_package(
    folder, averaged, monkeypatch, given
):
    loaded = record(monkeypatch, Run, "load_catalogue")
    run_checkpoints.average(folder, 1, given)
    assert loaded.call == {"self": make_run(), "t2t_usr_dir": given}


def test_a_folder_without_checkpoints_is_refused(tmp_path, averaged):
    make_run().save(tmp_path)
    with pytest.raises(UserError, match="no checkpoint in"):
        run_checkpoints.average(tmp_path, 1)
    assert averaged.calls == []


def test_the_runs_model_is_averaged_while_its_folder_is_locked(
    tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.INFO, "t2t_repro")
    locked = spy(monkeypatch, run_checkpoints, "folder_lock")

    def average_checkpoints(model, output_dir, paths):
        # Nobody else gets the lock.
        with (
            pytest.raises(UserError, match="averaging"),
            folder_lock(tmp_path, run_checkpoints.AVERAGING_LOCK, "averaging"),
        ):
            pass
        return f"average of {model}"

    written = record(
        monkeypatch, checkpoints, "average_checkpoints", average_checkpoints
    )
    record(monkeypatch, run_checkpoints, "check_fits")
    run = SimpleNamespace(
        load_tokenizers=lambda folder: (f"source of {folder}", f"target of {folder}"),
        build_model=lambda source, target: f"model of {source} and {target}",
    )
    paths = paths_in(tmp_path, 30, 200)
    model = f"model of source of {tmp_path} and target of {tmp_path}"
    averaged = run_checkpoints.average_paths(run, str(tmp_path), paths)
    assert averaged == f"average of {model}"
    assert written.call == {
        "model": model,
        "output_dir": str(tmp_path),
        "paths": paths,
    }
    assert locked.calls[0] == {
        "folder": tmp_path,
        "name": run_checkpoints.AVERAGING_LOCK,
        "doing": "averaging",
    }
    assert caplog.messages == ["averaging 2 checkpoint(s), of step 30, 200"]


def test_the_best_models_are_averaged(tmp_path):
    folder = tmp_path / "best_models"
    folder.mkdir()
    (folder / "scores.json").write_text('{"20": 3.0, "30": 9.0, "40": 5.0}')
    for step in (20, 30, 40, 50):
        (folder / f"model.ckpt-{step}.index").touch()
    found = [step_of(path) for path in paths_to_average(tmp_path, last=1, best=2)]
    assert found == [30, 40]


def test_an_average_older_than_the_newest_checkpoint_must_be_named(
    folder, averaged, caplog
):
    best = folder / "best_models"
    best.mkdir()
    (best / "scores.json").write_text('{"30": 9.0, "200": 5.0}')
    for step in (30, 200):
        (best / f"model.ckpt-{step}.index").touch()
    run_checkpoints.average(folder, best=2)
    assert caplog.messages == []
    run_checkpoints.average(folder, best=1)
    (message,) = caplog.messages
    assert "ends at step 30" in message
    assert "checkpoint_path=averaged" in message
