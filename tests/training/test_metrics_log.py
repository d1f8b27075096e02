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

from t2t_repro.errors import UserError
from t2t_repro.training.metrics_log import MetricsLog, scalar_tag


def events_of(folder):
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    return events


def tensors_of(folder, name):
    """Return the values with this name by step."""
    from tensorboard.util import tensor_util

    return {
        event.step: tensor_util.make_ndarray(event.tensor_proto)
        for event in events_of(folder).Tensors(name)
    }


def test_metrics_that_are_a_link_are_refused_and_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "metrics.jsonl").symlink_to(precious)
    with pytest.raises(UserError, match=r"metrics.jsonl is a symbolic link"):
        MetricsLog(tmp_path).scalars("train", 1, {"nll": 1.0})
    assert precious.read_text() == "precious"


def test_numbers_go_to_a_line_of_json(tmp_path):
    log = MetricsLog(tmp_path)
    log.scalars("train", 7, {"loss": 1.25})
    log.scalars("eval", 8, {"bleu": 30.0})
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record.pop("time") > 1e9 for record in records] == [True, True]
    assert records == [
        {"split": "train", "step": 7, "loss": 1.25},
        {"split": "eval", "step": 8, "bleu": 30.0},
    ]


def test_a_number_that_json_lacks_is_null(tmp_path):
    MetricsLog(tmp_path).scalars("train", 1, {"gradient_norm": math.inf, "loss": 1.0})
    record = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert (record["gradient_norm"], record["loss"]) == (None, 1.0)


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


def test_a_new_run_has_no_lines_to_drop(tmp_path):
    MetricsLog(tmp_path).truncate_after(0)
    assert not list(tmp_path.iterdir())


def test_lines_are_appended_to_those_of_an_earlier_process(tmp_path):
    for step in (1, 2):
        MetricsLog(tmp_path).scalars("train", step, {"loss": 1.0})
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_same_numbers_go_to_tensorboard_in_groups(tmp_path, split):
    log = MetricsLog(tmp_path)
    for step in (1, 2):
        log.scalars(split, step, {"nll": 0.5 * step})
    values = tensors_of(tmp_path / split, "loss/nll")
    assert {step: float(value) for step, value in values.items()} == {1: 0.5, 2: 1.0}


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


def layout_of(output_dir, split):
    """Return the titles of the layout, and the tags that each chart shows."""
    content = tensors_of(output_dir / split, "custom_scalars__config__")[0].item()
    layout = layout_pb2.Layout.FromString(content)
    found = {}
    for category in layout.category:
        for chart in category.chart:
            (pattern,) = chart.multiline.tag
            found[category.title, chart.title] = {
                tag for tag in TAGS if re.match(pattern, tag)
            }
    return found


TAGS = [
    "evaluation/bleu",
    "evaluation/token_accuracy",
    "loss/loss",
    "loss/nll",
    "optimization/learning_rate",
    "optimization/branch_learning_rate",
    "optimization/gradient_norm",
    "throughput/target_tokens_per_second",
    "throughput/target_tokens_per_step",
    "weights/encoder/layer_0/kappa/0",
    "weights/decoder/layer_3/alpha/1",
]


def test_the_custom_charts_begin_with_the_score_of_translations(tmp_path):
    MetricsLog(tmp_path).scalars("train", 1, {"loss": 1.0})
    charts = layout_of(tmp_path, "train")
    assert next(iter(charts)) == ("Overview", "Score of the dev translations")
    assert list(charts.values()) == [
        {"evaluation/bleu"},
        {"loss/nll"},
        {"evaluation/token_accuracy"},
        {"optimization/learning_rate", "optimization/branch_learning_rate"},
        {"throughput/target_tokens_per_second"},
        {"optimization/gradient_norm"},
    ]


def test_branches_add_charts_of_kappa_and_alpha_after_the_others(tmp_path):
    log = MetricsLog(tmp_path)
    log.scalars("train", 1, {"loss": 1.0})
    log.scalars("branches", 1, {"encoder/layer_0/kappa/0": 1.0})
    overview = layout_of(tmp_path, "train")
    charts = layout_of(tmp_path, "branches")
    assert list(charts.items())[: len(overview)] == list(overview.items())
    shown = {
        title: tags for (name, title), tags in charts.items() if name != "Overview"
    }
    assert shown == {
        "kappa of the encoder": {"weights/encoder/layer_0/kappa/0"},
        "alpha of the encoder": set(),
        "kappa of the decoder": set(),
        "alpha of the decoder": {"weights/decoder/layer_3/alpha/1"},
    }


def test_other_splits_have_no_layout(tmp_path):
    MetricsLog(tmp_path).scalars("eval", 1, {"nll": 1.0})
    tags = events_of(tmp_path / "eval").Tags()["tensors"]
    assert tags == ["loss/nll"]


def test_other_summaries_go_to_the_events_of_a_split(tmp_path):
    log = MetricsLog(tmp_path)
    with log.events("eval", 3):
        tf.summary.histogram("weights", [1.0, 2.0])
    assert list(tensors_of(tmp_path / "eval", "weights")) == [3]


def test_texts_go_to_tensorboard(tmp_path):
    MetricsLog(tmp_path).text("eval", 3, "translations", "| ä |")
    value = tensors_of(tmp_path / "eval", "translations")[3]
    assert value.item().decode() == "| ä |"
