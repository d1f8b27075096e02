from __future__ import annotations

import errno
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
from t2t_repro.training.metrics_log import MetricsLog, scalar_tag


def events_of(folder):
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    return events


def tensors_of(folder, name):
    """Return the values with this name by step."""
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


@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_same_numbers_go_to_tensorboard_in_groups(tmp_path, split):
    log = MetricsLog(tmp_path)
    for step in (1, 2):
        log.scalars(split, step, {"nll": 0.5 * step})
    assert points_of(tmp_path / split) == [(1, 0.5), (2, 1.0)]


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("perplexity", "loss/perplexity"),
        ("branch_learning_rate", "optimization/branch_learning_rate"),
        ("steps_per_second", "throughput/steps_per_second"),
        ("bleu", "evaluation/bleu"),
        ("bracketing_f1", "evaluation/bracketing_f1"),
        ("encoder/layer_0/kappa/1", "weights/encoder/layer_0/kappa/1"),
    ],
)
def test_every_metric_has_a_group(name, tag):
    assert scalar_tag(name) == tag


def charts_of(output_dir, split):
    """Return the patterns of the tags that each chart shows, by its title."""
    (content,) = tensors_of(output_dir / split, "custom_scalars__config__").values()
    layout = layout_pb2.Layout.FromString(content.item())
    charts = [chart for category in layout.category for chart in category.chart]
    return {chart.title: [*chart.multiline.tag] for chart in charts}


SHOWN = {
    "Score of the dev translations": ["evaluation/bleu"],
    "Loss in nats per target token, without smoothing": ["loss/nll"],
    "Share of dev tokens predicted correctly": ["evaluation/token_accuracy"],
    "Learning rate": [
        "optimization/learning_rate",
        "optimization/branch_learning_rate",
    ],
    "Target tokens per second": ["throughput/target_tokens_per_second"],
    "Norm of the gradient": ["optimization/gradient_norm"],
}
BRANCHES = {
    "kappa of the encoder": ["weights/encoder/layer_0/kappa/0"],
    "alpha of the encoder": ["weights/encoder/layer_0/alpha/0"],
    "kappa of the decoder": ["weights/decoder/layer_3/kappa/1"],
    "alpha of the decoder": ["weights/decoder/layer_3/alpha/1"],
}
TAGS = [tag for tags in (SHOWN | BRANCHES).values() for tag in tags]


@pytest.mark.parametrize(
    ("split", "shown"), [("train", SHOWN), ("branches", SHOWN | BRANCHES)]
)
def test_the_custom_charts_are_the_overview_and_those_of_branches(
    tmp_path, split, shown
):
    MetricsLog(tmp_path).scalars(split, 1, {"loss": 1.0})
    charts = charts_of(tmp_path, split)
    assert list(charts) == list(shown)
    for title, (pattern,) in charts.items():
        found = [tag for tag in (*TAGS, "loss/loss") if re.match(pattern, tag)]
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


def test_points_of_steps_that_are_repeated_do_not_occur_twice(tmp_path):
    write(tmp_path, "train", (1, 2, 3), 1.0)
    MetricsLog(tmp_path).truncate_after(2)
    write(tmp_path, "train", (3, 4), 2.0)
    expected = [(1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0)]
    assert points_of(tmp_path / "train") == expected


def test_the_same_process_can_go_back(tmp_path):
    log = write(tmp_path, "train", (1, 2, 3), 1.0)
    log.truncate_after(1)
    log.scalars("train", 2, {"nll": 2.0})
    assert points_of(tmp_path / "train") == [(1, 1.0), (2, 2.0)]


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


def flip_length(content):
    content[0] ^= 1


def overwrite_last_event(content):
    content[-24:-4] = b"\xff" * 20


def cut(count):
    def damage(content):
        del content[-count:]

    return damage


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        (cut(1), {1}),
        (cut(30), {1}),
        (overwrite_last_event, {1}),
        (flip_length, None),
    ],
)
def test_events_before_a_damaged_one_stay(tmp_path, damage, left):
    write(tmp_path, "train", (1, 2))
    (path,) = (tmp_path / "train").iterdir()
    content = bytearray(path.read_bytes())
    damage(content)
    path.write_bytes(content)
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
