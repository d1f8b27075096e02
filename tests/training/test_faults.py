"""Faults of disks, files and clocks, one test each."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data.pipeline import Shards
from t2t_repro.errors import UserError
from tests.support.tiny_training import (
    STEPS,
    losses_of,
    metrics_of,
    saved_steps,
    train,
    weights_of,
)


@pytest.fixture
def own_shards(shards, tmp_path):
    """Return a copy of the shards to damage."""
    paths = [shutil.copy(path, tmp_path) for path in shards.paths]
    return Shards(tuple(paths))


def damage_last_record(path):
    content = bytearray(Path(path).read_bytes())
    content[-6] ^= 0xFF
    Path(path).write_bytes(content)


def test_a_record_with_a_bad_checksum_is_named_and_can_be_mended(
    uninterrupted, shards, own_shards, tmp_path
):
    run = tmp_path / "run"
    train(run, own_shards, train_steps=3)
    damage_last_record(own_shards.paths[0])
    with pytest.raises(
        UserError,
        match=r"^cannot read the prepared data after step 3: corrupted record at "
        r"\d+(.|\n)*Restore the files",
    ):
        train(run, own_shards, train_steps=STEPS)
    assert saved_steps(run) == [3]
    trainer = train(run, shards, train_steps=STEPS)
    for path, values in weights_of(trainer.model).items():
        np.testing.assert_array_equal(values, uninterrupted[1][path])


def test_a_shard_that_vanishes_during_training_is_named(own_shards, tmp_path):
    def remove(step, log):
        if step == 3:
            os.unlink(own_shards.paths[0])
        return {}

    options = {
        "local_eval_frequency": 1,
        "evaluators": [remove],
        "save_checkpoints_steps": 2,
    }
    with pytest.raises(UserError, match=r"cannot read the prepared data.*No such file"):
        train(tmp_path / "run", own_shards, train_steps=STEPS, **options)
    assert saved_steps(tmp_path / "run") == [2, 4]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EIO])
def test_a_read_only_folder_is_a_system_error(shards, tmp_path, monkeypatch, number):
    """Permissions do not stop root, who may run the tests."""
    train(tmp_path, shards, train_steps=3)

    def refuse(self, path):
        message = f"{path}_temp; {os.strerror(number)}"
        raise tf.errors.PermissionDeniedError(None, None, message)

    monkeypatch.setattr(tf.train.Checkpoint, "write", refuse)
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        train(tmp_path, shards, train_steps=4)
    assert caught.value.filename == str(tmp_path / "model.ckpt-4")
    assert saved_steps(tmp_path) == [3]


def test_a_damaged_checkpoint_changes_nothing(uninterrupted, shards, tmp_path, caplog):
    train(tmp_path, shards, train_steps=7, save_checkpoints_steps=3)
    path = tmp_path / "model.ckpt-7.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    trainer = train(tmp_path, shards, train_steps=STEPS)
    losses, weights = uninterrupted
    assert "model.ckpt-7 is damaged" in caplog.text
    assert "resuming from step 6" in caplog.text
    # The lines of step 7 are not there twice.
    assert [line["step"] for line in metrics_of(tmp_path)] == list(losses)
    assert losses_of(tmp_path) == losses
    for path, values in weights_of(trainer.model).items():
        np.testing.assert_array_equal(values, weights[path])


@pytest.mark.parametrize("jump", [-1e9, 1e9])
def test_jumps_of_the_clock_change_no_rate_or_save(shards, tmp_path, monkeypatch, jump):
    clock = [1.8e9]

    def time_with_jumps():
        clock[0] += jump
        return clock[0]

    monkeypatch.setattr("time.time", time_with_jumps)
    options = {"save_checkpoints_steps": 0, "save_checkpoints_secs": 1000.0}
    train(tmp_path, shards, train_steps=6, **options)
    assert saved_steps(tmp_path) == [6]
    for line in metrics_of(tmp_path)[1:]:
        assert 0.001 < line["steps_per_second"] < 1e6
