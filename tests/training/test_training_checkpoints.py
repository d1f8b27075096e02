from __future__ import annotations

import math
from pathlib import Path

import pytest
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.files import full_disk_as_user_error
from t2t_repro.training.checkpoint_paths import (
    all_checkpoints,
    find_checkpoint,
    step_of,
)
from t2t_repro.training.checkpoints import average_checkpoints, model_variables, restore
from tests.support.file_limit import largest_file
from tests.support.tiny_training import (
    checkpoints_of,
    fill,
    one_value,
    saved_steps,
    tiny_model,
)


def test_only_the_newest_are_kept(model, tmp_path):
    for step in (9, 10, 100):  # each by another process
        checkpoints_of(model, tmp_path, keep=2).save(step)
    assert saved_steps(tmp_path) == [10, 100]


def test_the_checkpoint_of_a_stop_is_removed_after_the_next_one(model, tmp_path):
    """It would be averaged, and an uninterrupted run does not have it."""
    for step in (10, 20, 25):
        checkpoints_of(model, tmp_path, 5, 10).save(step)
    resumed = checkpoints_of(model, tmp_path, 5, 10)
    resumed.restore_latest()
    assert saved_steps(tmp_path) == [10, 20, 25]
    resumed.save(30)
    assert saved_steps(tmp_path) == [10, 20, 30]
    resumed.save(33)  # the end of a training run
    resumed.save(40)
    assert saved_steps(tmp_path) == [10, 20, 30, 33, 40]


@pytest.mark.parametrize(
    ("every", "keep", "before", "after"),
    [(4, 2, (4, 7), [4, 8]), (0, 5, (7,), [7, 8])],
    ids=["by steps", "by time"],
)
def test_only_the_checkpoint_of_a_stop_gives_up_its_place(
    model, tmp_path, every, keep, before, after
):
    for step in before:
        checkpoints_of(model, tmp_path, keep, every).save(step)
    resumed = checkpoints_of(model, tmp_path, keep, every)
    resumed.restore_latest()
    resumed.save(8)
    assert saved_steps(tmp_path) == after


def test_the_score_of_the_best_is_kept_with_it(own_run, model):
    checkpoints = checkpoints_of(model, own_run)
    assert checkpoints.best_value("bleu") == 30.5
    assert checkpoints.best_value("other") == -math.inf
    (own_run / "best" / "bleu").write_text("")
    assert checkpoints.best_value("bleu") == -math.inf  # it is damaged


def test_tensorflow_finds_the_newest_too(run):
    assert tf.train.latest_checkpoint(str(run)) == find_checkpoint(run)


@pytest.mark.parametrize("content", [None, "", "nonsense"])
def test_tensorflows_file_beside_the_checkpoints_may_be_lost(own_run, model, content):
    if content is None:
        (own_run / "checkpoint").unlink()
    else:
        (own_run / "checkpoint").write_text(content)
    found = checkpoints_of(model, own_run).restore_latest()
    assert step_of(found) == 300
    assert one_value(model) == 6.0


@pytest.mark.parametrize("part", ["data-00000-of-00001", "index"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(own_run, model, part, caplog):
    (own_run / f"model.ckpt-300.{part}").write_bytes(b"")
    path = checkpoints_of(model, own_run).restore_latest()
    assert step_of(path) == 200
    assert one_value(model) == 2.0
    assert "model.ckpt-300 is damaged" in caplog.text
    assert "resuming from step 200" in caplog.text
    assert find_checkpoint(own_run) == path
    # No file is lost, and a second damaged checkpoint gets another name.
    assert len(list(own_run.glob("model.ckpt-300.damaged.*"))) == 2
    checkpoints_of(model, own_run).save(300)
    (own_run / f"model.ckpt-300.{part}").write_bytes(b"")
    assert checkpoints_of(model, own_run).restore_latest() == path


def test_only_damaged_checkpoints_are_a_user_error(own_run, model):
    for step in (100, 200, 300):
        (own_run / f"model.ckpt-{step}.index").write_bytes(b"")
    fill(model, 7.0)
    with pytest.raises(
        UserError,
        match=r"model\.ckpt-300, model\.ckpt-200, model\.ckpt-100(.|\n)*another folder",
    ):
        checkpoints_of(model, own_run).restore_latest()
    assert one_value(model) == 7.0
    assert saved_steps(own_run) == [100, 200, 300]


def test_a_checkpoint_of_another_model_is_not_skipped(own_run):
    (own_run / "model.ckpt-300.index").write_bytes(b"")
    other = checkpoints_of(tiny_model(num_encoder_layers=2), own_run)
    with pytest.raises(UserError, match=r"ckpt-200: it is of a model with other"):
        other.restore_latest()
    assert len(all_checkpoints(own_run)) == 3


def test_a_file_without_read_permission_is_not_damaged(own_run, model, monkeypatch):
    """Permissions do not stop root, who may run the tests."""

    def refuse(self, *args):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError):
        checkpoints_of(model, own_run).restore_latest()


def test_leftovers_of_killed_saves_are_removed(own_run, model):
    before = sorted(own_run.iterdir())
    temporary = own_run / "model.ckpt-400_temp"
    temporary.mkdir()
    (temporary / "part-00000-of-00001.data-00000-of-00001").write_bytes(b"x")
    (own_run / "model.ckpt-400.index.tempstate123").write_bytes(b"x")
    # Renamed without an index yet, or with its index already removed.
    (own_run / "model.ckpt-400.data-00000-of-00001").write_bytes(b"x")
    (own_run / "best.incomplete").mkdir()
    (own_run / "checkpoint.0123abcd.incomplete").write_bytes(b"x")
    checkpoints_of(model, own_run).clean_up()
    assert sorted(own_run.iterdir()) == before


def test_a_link_in_place_of_a_checkpoint_is_not_followed(own_run, model):
    precious = own_run.parent / "precious"
    precious.write_text("precious")
    (own_run / "model.ckpt-400.index").symlink_to(precious)
    path = checkpoints_of(model, own_run).save(400)
    assert precious.read_text() == "precious"
    restore(model_variables(model), path)


def test_a_save_beyond_the_limit_on_the_size_of_files_says_so(own_run, model):
    before = sorted(own_run.iterdir())
    with (
        pytest.raises(UserError, match=r"File too large; raise the limit on the size"),
        full_disk_as_user_error(own_run, "then train again"),
        largest_file(100),
    ):
        checkpoints_of(model, own_run).save(400)
    assert sorted(own_run.iterdir()) == before


def test_a_save_that_fails_leaves_no_files(own_run, model, monkeypatch):
    before = sorted(own_run.iterdir())

    def fill_the_disk(self, path):
        Path(f"{path}_temp").mkdir()
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.train.Checkpoint, "write", fill_the_disk)
    checkpoints = checkpoints_of(model, own_run)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        checkpoints.save(400)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        checkpoints.save_best(400, "bleu", 99.0)
    with pytest.raises(UserError, match=r"cannot write .*averaged: No space left"):
        average_checkpoints(model, own_run, all_checkpoints(own_run)[:1])
    assert sorted(own_run.iterdir()) == before
    assert checkpoints.best_value("bleu") == 30.5


def test_a_best_model_that_a_killed_process_renamed_is_found(own_run, model):
    (own_run / "best").rename(own_run / "best.replaced")
    assert checkpoints_of(model, own_run).best_value("bleu") == 30.5
    restore(model_variables(model), find_checkpoint(own_run, "best"))
    assert one_value(model) == 9.0
    checkpoints_of(model, own_run).clean_up()
    assert (own_run / "best" / "bleu").exists()
    assert not (own_run / "best.replaced").exists()


def test_the_average_is_the_mean_and_replaces_the_earlier_one(own_run, model):
    paths = all_checkpoints(own_run)
    average_checkpoints(model, own_run, paths[1:2])
    assert one_value(model) == 2.0
    path = average_checkpoints(model, own_run, paths)
    assert one_value(model) == 3.0
    assert path == str(own_run / "averaged" / "model.ckpt-300")
    assert all_checkpoints(own_run / "averaged") == [path]
    assert not (own_run / "averaged.incomplete").exists()


def test_averaging_a_damaged_checkpoint_leaves_the_old_average(own_run, model):
    paths = all_checkpoints(own_run)
    average_checkpoints(model, own_run, paths)
    (own_run / "model.ckpt-200.data-00000-of-00001").write_bytes(b"")
    with pytest.raises(UserError):
        average_checkpoints(model, own_run, paths)
    restore(model_variables(model), find_checkpoint(own_run, "averaged"))
    assert one_value(model) == 3.0
