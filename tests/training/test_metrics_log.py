"""Metrics of a window of steps, and their lines and events."""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import re

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.util.tensor_util import make_ndarray

from t2t_repro.errors import UserError
from t2t_repro.training.metrics_file import by_step, training_seconds
from t2t_repro.training.metrics_log import MetricsLog, MetricsWindow, scalar_tag

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


def events_of(folder):
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    return events


def tensors_of(folder, name):
    return {
        event.step: make_ndarray(event.tensor_proto)
        for event in events_of(folder).Tensors(name)
    }


def points_of(folder):
    """Return all points by step, also those of equal steps."""
    return sorted(
        (event.step, float(make_ndarray(event.tensor_proto)))
        for event in events_of(folder).Tensors("loss/nll")
    )


def test_metrics_that_are_a_link_are_refused_and_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "metrics.jsonl").symlink_to(precious)
    with pytest.raises(UserError, match=r"metrics.jsonl is a symbolic link"):
        MetricsLog(tmp_path).scalars("train", 1, {"nll": 1.0})
    assert precious.read_text() == "precious"


def test_numbers_go_to_a_line_of_json(tmp_path):
    values = {"loss": 1.25, "gradient_norm": math.inf}
    MetricsLog(tmp_path).scalars("train", 7, values)
    MetricsLog(tmp_path).scalars("eval", 8, {"bleu": 30.0})  # another process
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record.pop("time") > 1e9 for record in records] == [True, True]
    assert records == [
        {"split": "train", "step": 7, "loss": 1.25, "gradient_norm": None},
        {"split": "eval", "step": 8, "bleu": 30.0},
    ]


@pytest.mark.parametrize("cut_short", ["", '{"split": "tra'])
def test_a_resumed_run_drops_the_lines_that_it_repeats(tmp_path, cut_short):
    log = MetricsLog(tmp_path)
    for step in (1, 2, 3):
        log.scalars("train", step, {"loss": 1.0})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write(cut_short)
    MetricsLog(tmp_path).truncate_after(2)
    log.scalars("train", 3, {"loss": 2.0})
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    found = [(json.loads(line)["step"], json.loads(line)["loss"]) for line in lines]
    assert found == [(1, 1.0), (2, 1.0), (3, 2.0)]


def test_a_last_line_without_its_end_counts_as_cut_short(tmp_path):
    log = MetricsLog(tmp_path)
    log.scalars("eval", 1, {"bleu": 1.0})
    log.scalars("eval", 2, {"bleu": 1.0})
    path = tmp_path / "metrics.jsonl"
    path.write_text(path.read_text().removesuffix("\n"))
    assert not log.has_line("eval", 2)
    log.truncate_after(2)
    assert len(path.read_text().splitlines()) == 1


def test_a_line_is_found_by_split_and_step(tmp_path):
    log = MetricsLog(tmp_path)
    assert not log.has_line("eval", 2)
    log.scalars("eval", 2, {"bleu": 1.0})
    log.scalars("train", 3, {"loss": 1.0})
    assert log.has_line("eval", 2)
    assert log.has_line("train", 3)
    assert not log.has_line("train", 2)
    assert not log.has_line("eval", 3)


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    log = MetricsLog(tmp_path)
    log.scalars("train", 1, {"loss": 1.0})
    before = (tmp_path / "metrics.jsonl").read_bytes()
    real_open = os.fdopen

    def open_on_a_full_disk(*args, **kwargs):
        file = real_open(*args, **kwargs)
        real_write = file.write

        def write(text):
            real_write(text[:5])
            file.flush()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        file.write = write
        return file

    monkeypatch.setattr(os, "fdopen", open_on_a_full_disk)
    with pytest.raises(OSError, match="No space left") as caught:
        log.scalars("train", 2, {"loss": 1.0})
    assert caught.value.filename == str(tmp_path / "metrics.jsonl")
    monkeypatch.undo()
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def charts_of(output_dir, split):
    """Return the patterns of the tags that each chart shows, by its title."""
    (content,) = tensors_of(output_dir / split, "custom_scalars__config__").values()
    layout = layout_pb2.Layout.FromString(content.item())
    charts = [chart for category in layout.category for chart in category.chart]
    return {chart.title: [*chart.multiline.tag] for chart in charts}


SHOWN = {
    "Score of the dev translations": ["bleu", "bracketing_f1"],
    "Loss in nats per target token, without smoothing": ["nll"],
    "Share of dev tokens predicted correctly": ["token_accuracy"],
    "Learning rate": ["learning_rate", "branch_learning_rate"],
    "Target tokens per second": ["target_tokens_per_second"],
    "Norm of the gradient": ["gradient_norm"],
}
BRANCHES = {
    "kappa of the encoder": ["encoder/layer_0/kappa/0"],
    "alpha of the encoder": ["encoder/layer_0/alpha/0"],
    "kappa of the decoder": ["decoder/layer_3/kappa/1"],
    "alpha of the decoder": ["decoder/layer_3/alpha/1"],
}
OTHERS = ["loss", "perplexity", "steps_per_second"]


@pytest.mark.parametrize(
    ("split", "shown"), [("train", SHOWN), ("branches", SHOWN | BRANCHES)]
)
def test_custom_charts_are_the_overview_and_those_of_branches(tmp_path, split, shown):
    MetricsLog(tmp_path).scalars(split, 1, {"loss": 1.0})
    charts = charts_of(tmp_path, split)
    assert list(charts) == list(shown)
    for title, (pattern,) in charts.items():
        names = [*OTHERS, *itertools.chain(*(SHOWN | BRANCHES).values())]
        found = [name for name in names if re.match(pattern, scalar_tag(name))]
        assert found == shown[title]


def test_other_summaries_and_texts_go_to_the_events_of_a_split(tmp_path):
    log = MetricsLog(tmp_path)
    with log.events("eval", 3):
        tf.summary.histogram("weights", [1.0, 2.0])
    log.text("eval", 3, "translations", "| ä |")
    assert list(tensors_of(tmp_path / "eval", "weights")) == [3]
    value = tensors_of(tmp_path / "eval", "translations")[3]
    assert value.item().decode() == "| ä |"
    # Only the splits above have charts.
    tags = events_of(tmp_path / "eval").Tags()["tensors"]
    assert sorted(tags) == ["translations", "weights"]


def write(folder, split, steps, value=1.0):
    log = MetricsLog(folder)
    for step in steps:
        log.scalars(split, step, {"nll": value})
    return log


@pytest.mark.parametrize("same_process", [True, False])
def test_points_of_steps_that_are_repeated_do_not_occur_twice(tmp_path, same_process):
    log = write(tmp_path, "train", (1, 2, 3), 1.0)
    log = log if same_process else MetricsLog(tmp_path)
    log.truncate_after(2)
    for step in (3, 4):
        log.scalars("train", step, {"nll": 2.0})
    expected = [(1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0)]
    assert points_of(tmp_path / "train") == expected


def test_the_points_of_an_evaluation_without_a_line_are_dropped(tmp_path):
    """The process was killed while it evaluated, and evaluates again."""
    log = write(tmp_path, "train", (2, 4))
    write(tmp_path, "eval", (2,))
    with log.events("eval", 4):
        log.text("eval", 4, "translations", "text")
    log.truncate_after(4)
    assert "translations" not in events_of(tmp_path / "eval").Tags()["tensors"]
    assert points_of(tmp_path / "train") == [(2, 1.0), (4, 1.0)]
    assert points_of(tmp_path / "eval") == [(2, 1.0)]


def test_the_settings_written_at_the_beginning_stay(tmp_path):
    log = MetricsLog(tmp_path)
    log.text("eval", 0, "settings", "text")
    log.truncate_after(0)
    assert events_of(tmp_path / "eval").Tags()["tensors"] == ["settings"]


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        (lambda content: content[:-1], {1}),
        (lambda content: content[:-30], {1}),
        (lambda content: content[:-24] + b"\xff" * 20 + content[-4:], {1}),
        (lambda content: bytes([content[0] ^ 1]) + content[1:], None),
    ],
)
def test_events_before_a_damaged_one_stay(tmp_path, damage, left):
    write(tmp_path, "train", (1, 2))
    (path,) = (tmp_path / "train").iterdir()
    path.write_bytes(damage(path.read_bytes()))
    MetricsLog(tmp_path).truncate_after(2)
    if left is None:
        assert path.read_bytes() == b""
    else:
        assert {step for step, _ in points_of(tmp_path / "train")} == left


def test_files_without_later_events_are_not_written_again(tmp_path):
    write(tmp_path, "train", (1, 2))
    (path,) = (tmp_path / "train").iterdir()
    before = path.stat().st_ino
    MetricsLog(tmp_path).truncate_after(2)
    assert path.stat().st_ino == before


def test_a_rewriting_that_was_killed_is_cleaned_up(tmp_path):
    write(tmp_path, "train", (1, 2, 3))
    (path,) = (tmp_path / "train").iterdir()
    leftover = path.with_name(path.name + ".incomplete")
    leftover.write_bytes(path.read_bytes()[:50])
    MetricsLog(tmp_path).truncate_after(2)
    assert not leftover.exists()
    assert points_of(tmp_path / "train") == [(1, 1.0), (2, 1.0)]


def test_events_of_other_programs_stay(tmp_path):
    write(tmp_path, "other_run", (1, 2, 3)).truncate_after(2)
    assert len(points_of(tmp_path / "other_run")) == 3


def test_the_last_record_of_a_step_counts():
    records = [
        {"split": "eval", "step": 10, "nll": 3.0},
        {"split": "train", "step": 10, "loss": 5.0},
        {"split": "eval", "step": 10, "nll": 2.0},
    ]
    assert by_step(records, "eval") == {10: records[2]}


def test_pauses_do_not_count_as_training():
    records = [
        {"split": "train", "step": 100, "time": 0.0, "steps_per_second": 4.0},
        {"split": "eval", "step": 100, "time": 500.0},
        {"split": "train", "step": 300, "time": 9_000.0, "steps_per_second": 10.0},
    ]
    assert training_seconds(records) == 45.0


def test_first_updates_count_with_their_own_time_only():
    records = [
        {"split": "train", "step": 1, "compile_seconds": 16.0, "compiled_updates": 1},
        {
            "split": "train",
            "step": 11,
            "steps_per_second": 0.5,
            "compile_seconds": 50.0,
            "compiled_updates": 3,
        },
    ]
    # The first update, seven at half a step per second, and the three others.
    assert training_seconds(records) == 16.0 + 7 / 0.5 + 50.0
