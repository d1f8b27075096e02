from __future__ import annotations

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from t2t_repro.training.metrics_log import MetricsLog


def points_of(folder, tag="loss/nll"):
    """Return all points in the order of writing, also those of equal steps."""
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    if tag not in events.Tags()["tensors"]:
        return []
    return [
        (event.step, float(make_ndarray(event.tensor_proto)))
        for event in events.Tensors(tag)
    ]


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
    log = write(tmp_path, "train", (2,))
    with log.events("eval", 2):
        log.text("eval", 2, "translations", "text")
    log.truncate_after(2)
    assert points_of(tmp_path / "eval", "translations") == []
    assert points_of(tmp_path / "train") == [(2, 1.0)]


def test_the_points_of_an_evaluation_with_a_line_stay(tmp_path):
    write(tmp_path, "eval", (2,)).truncate_after(2)
    assert points_of(tmp_path / "eval") == [(2, 1.0)]


def test_the_settings_written_at_the_beginning_stay(tmp_path):
    log = MetricsLog(tmp_path)
    log.text("eval", 0, "settings", "text")
    log.truncate_after(0)
    events = EventAccumulator(str(tmp_path / "eval"), size_guidance={"tensors": 0})
    events.Reload()
    assert events.Tags()["tensors"] == ["settings"]


@pytest.mark.parametrize("missing", [1, 5, 30])
def test_half_an_event_at_the_end_is_dropped(tmp_path, missing):
    write(tmp_path, "train", (1, 2))
    (path,) = (tmp_path / "train").iterdir()
    path.write_bytes(path.read_bytes()[:-missing])
    MetricsLog(tmp_path).truncate_after(2)
    assert {step for step, _ in points_of(tmp_path / "train")} == {1}


def test_files_without_later_events_are_not_written_again(tmp_path):
    write(tmp_path, "train", (1, 2))
    (path,) = (tmp_path / "train").iterdir()
    before = path.stat().st_ino
    MetricsLog(tmp_path).truncate_after(2)
    assert path.stat().st_ino == before


def test_events_before_a_damaged_one_stay(tmp_path):
    write(tmp_path, "train", (1, 2, 3))
    (path,) = (tmp_path / "train").iterdir()
    content = bytearray(path.read_bytes())
    content[-24:-4] = b"\xff" * 20
    path.write_bytes(content)
    MetricsLog(tmp_path).truncate_after(2)
    assert {step for step, _ in points_of(tmp_path / "train")} <= {1, 2}


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


def test_events_before_a_damaged_length_stay(tmp_path):
    write(tmp_path, "train", (1, 2, 3))
    (path,) = (tmp_path / "train").iterdir()
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    MetricsLog(tmp_path).truncate_after(3)
    assert path.read_bytes() == b""
