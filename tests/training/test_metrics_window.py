from __future__ import annotations

import math

import pytest
import tensorflow as tf

from t2t_repro.training.metrics_log import MetricsWindow

NAMES = (
    "loss",
    "nll",
    "gradient_norm",
    "learning_rate",
    "source_tokens",
    "target_tokens",
    "positions",
)
STEPS = (
    (8.0, 6.0, 2.0, 0.25, 30.0, 10.0, 80.0),
    (4.0, 3.0, 5.0, 0.5, 70.0, 30.0, 170.0),
)


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that the test moves."""
    seconds = [0.0]
    monkeypatch.setattr(
        "t2t_repro.training.metrics_log.time.monotonic", lambda: seconds[0]
    )
    return seconds


def add_steps(window):
    for number, values in enumerate(STEPS):
        step = dict(zip(NAMES, map(tf.constant, values), strict=True))
        window.add(step | {"branch_learning_rate": tf.constant(0.25 * number)})


def test_losses_are_means_over_tokens_and_the_rest_is_per_step_or_second(clock):
    window = MetricsWindow()
    add_steps(window)
    clock[0] = 16.0
    assert window.summarize() == {
        "loss": (10 * 8 + 30 * 4) / 40,
        "nll": (10 * 6 + 30 * 3) / 40,
        "gradient_norm": 3.5,
        "learning_rate": 0.5,
        "branch_learning_rate": 0.25,
        "source_tokens_per_second": 6.25,
        "target_tokens_per_second": 2.5,
        "target_tokens_per_step": 20.0,
        "padding_share": pytest.approx(1 - 140 / 250),
        "steps_per_second": 0.125,
    }


def test_a_pause_is_not_counted(clock):
    window = MetricsWindow()
    add_steps(window)
    clock[0] = 3.0

    def move_the_clock():
        clock[0] = 1003.0

    window.pause(move_the_clock)
    clock[0] = 1004.0
    assert window.summarize()["steps_per_second"] == 2 / 4


def test_rates_leave_out_the_first_update_of_a_shape_and_its_time(clock):
    window = MetricsWindow()
    first, second = STEPS
    clock[0] = 100.0
    window.add(dict(zip(NAMES, first, strict=True)), compile_seconds=97.0)
    clock[0] = 105.0
    window.add(dict(zip(NAMES, second, strict=True)))
    state = window.state()
    for each in (MetricsWindow(state), window):
        summary = each.summarize()
        assert summary["compile_seconds"] == 97.0
        assert summary["compiled_updates"] == 1
        # Eight seconds: 105 less 97.
        assert summary["source_tokens_per_second"] == 70 / 8
        assert summary["target_tokens_per_second"] == 30 / 8
        assert summary["steps_per_second"] == 1 / 8
        # All but the rates is of both steps.
        assert summary["target_tokens_per_step"] == 20.0
        assert summary["loss"] == (10 * 8 + 30 * 4) / 40


def test_first_updates_alone_have_no_rate(clock):
    window = MetricsWindow()
    for seconds in (3.0, 4.5):
        clock[0] += seconds
        window.add(dict(zip(NAMES, STEPS[0], strict=True)), compile_seconds=seconds)
    summary = window.summarize()
    assert summary["compile_seconds"] == 7.5
    assert summary["compiled_updates"] == 2
    assert not [name for name in summary if "per_second" in name]
    assert summary["loss"] == 8.0


def scaled(loss, norm, scale, **others):
    values = (loss, loss, norm, 0.5, 7.0, 10.0, 20.0)
    return dict(zip(NAMES, values, strict=True)) | {"loss_scale": scale} | others


def test_overflows_of_the_loss_scale_are_counted_and_have_no_norm():
    window = MetricsWindow()
    window.add(scaled(4.0, math.inf, 8.0))
    window.add(scaled(3.0, math.nan, 4.0))
    window.add(scaled(2.0, 1.0, 2.0))
    window.add(scaled(9.0, math.inf, 2.0, skipped=1.0))
    window.add(scaled(1.0, 5.0, 2.0))
    summary = window.summarize()
    assert (summary["overflowed_updates"], summary["skipped_updates"]) == (2, 1)
    assert (summary["gradient_norm"], summary["loss"]) == (3.0, 2.5)
    assert summary["loss_scale"] == 2.0


def test_without_loss_scaling_an_infinite_norm_is_no_overflow():
    window = MetricsWindow()
    window.add(dict(zip(NAMES, (4.0, 4.0, math.inf, 0.5, 7.0, 1.0, 9.0), strict=True)))
    summary = window.summarize()
    assert summary["gradient_norm"] == math.inf
    assert not {"overflowed_updates", "loss_scale"} & set(summary)


def test_a_summary_begins_a_new_window(clock):
    window = MetricsWindow()
    add_steps(window)
    clock[0] = 16.0
    window.summarize()
    window.add(dict(zip(NAMES, map(tf.constant, STEPS[1]), strict=True)))
    clock[0] = 18.0
    summary = window.summarize()
    assert (summary["loss"], summary["steps_per_second"]) == (4.0, 0.5)
