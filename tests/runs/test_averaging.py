"""Which checkpoints are averaged; tests/cli/test_average.py has their average."""

from __future__ import annotations

import pytest

from t2t_repro.runs import run_checkpoints
from t2t_repro.runs.run_checkpoints import paths_to_average
from t2t_repro.training.checkpoint_paths import step_of
from tests.runs.test_run import make_run
from tests.support.recorder import record


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
