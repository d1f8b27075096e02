"""Planned updates are timed in this process alone."""

from __future__ import annotations

import pytest

from t2t_repro import catalogue
from t2t_repro.data.request import requested_settings
from t2t_repro.features.planning import timing
from t2t_repro.features.planning.training_plan import plan_training
from t2t_repro.runs.training_config import resolved_hparams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training import cluster
from t2t_repro.training.step import StepOptions
from tests.support.recorder import record


def test_a_random_batch_can_have_shorter_sources():
    batch = timing.random_batch(3, 8, (20, 30), source_length=5)
    assert batch["inputs"].shape == (3, 5)
    assert batch["targets"].shape == (3, 8)


class Timed(Exception):
    """Ends the timing after its devices are chosen."""


def stop(*_, **__):
    raise Timed


def time_one_step(train_steps):
    catalogue.load()
    problem = catalogue.problem("translate_ende_synthetic")
    settings = TrainSettings(
        output_dir="", hparams_set="transformer_tiny", train_steps=train_steps
    )
    hparams = resolved_hparams(settings)
    plan = plan_training(problem, settings, hparams, requested_settings(problem, {}))
    return timing.time_training(plan, settings, hparams, 1)


def test_timing_does_not_wait_for_other_workers(monkeypatch):
    found = record(monkeypatch, cluster, "find_cluster")
    monkeypatch.setattr(timing, "make_repeatable", stop)
    with pytest.raises(Timed):
        time_one_step(100_000)
    assert found.calls == []


@pytest.mark.parametrize(("train_steps", "xla"), [(100, "off"), (100_000, "on")])
def test_the_timed_step_is_compiled_as_in_the_training_run(
    monkeypatch, train_steps, xla
):
    found = record(monkeypatch, timing, "step_options", stop)
    with pytest.raises(Timed):
        time_one_step(train_steps)
    assert found.call["xla"] == xla


@pytest.mark.parametrize(
    ("compiled", "count"), [(True, 5), (False, 1)], ids=["compiled", "traced"]
)
def test_only_compiled_steps_have_a_first_update_for_each_shape(
    monkeypatch, compiled, count
):
    options = StepOptions(label_smoothing=0.1, jit_compile=compiled)
    monkeypatch.setattr(timing, "step_options", lambda *_: options)
    monkeypatch.setattr(timing, "make_train_step", lambda *_: None)
    monkeypatch.setattr(timing, "_seconds_of_updates", lambda *_: [9.5, 0.5])
    timed = time_one_step(100_000)
    assert (timed.compilations, timed.compile_seconds) == (count, 9.0)
