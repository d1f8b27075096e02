"""Planned updates are timed in this process alone."""

from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.data.request import requested_settings
from t2t_repro.runs import timing
from t2t_repro.runs.plan import plan_training
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training import setup
from tests.support.recorder import record


def test_a_random_batch_can_have_shorter_sources():
    batch = timing.random_batch(3, 8, (20, 30), source_length=5)
    assert batch["inputs"].shape == (3, 5)
    assert batch["targets"].shape == (3, 8)


class Timed(Exception):
    """Ends the timing after its devices are chosen."""


def test_timing_does_not_wait_for_other_workers(monkeypatch):
    catalogue.load()
    problem = catalogue.problem("translate_ende_synthetic")
    settings = TrainSettings(output_dir="", hparams_set="transformer_tiny")
    plan = plan_training(problem, settings, requested_settings(problem, {}))

    def stop(*_, **__):
        raise Timed

    found = record(monkeypatch, setup, "find_cluster")
    monkeypatch.setattr(timing, "make_repeatable", stop)
    with pytest.raises(Timed):
        timing.time_training(plan, settings, 1)
    assert found.calls == []
