from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.training.checkpoint_paths import (
    all_checkpoints,
    find_checkpoint,
    last_checkpoints,
    latest_step,
    step_in_name,
)
from t2t_repro.training.checkpoints import (
    DamagedCheckpointError,
    model_variables,
    read_values,
    remove_checkpoint,
    restore,
    write_checkpoint,
)
from tests.support.tiny_training import fill, one_value, tiny_model


@pytest.mark.parametrize("name", ["run [v1]", "back\\slash", "a*?{b}", "läuf"])
def test_a_checkpoint_is_read_whatever_its_folder_is_called(tmp_path, run, model, name):
    copy = shutil.copytree(run, tmp_path / name)
    restore(model_variables(model), find_checkpoint(copy))
    assert one_value(model) == 6.0
    assert read_values(find_checkpoint(copy), "model")


def test_a_checkpoint_is_read_whatever_it_is_called(own_run, model):
    for file in own_run.glob("model.ckpt-300.*"):
        file.rename(own_run / f"mine [v1]{file.name.removeprefix('model.ckpt-300')}")
    path = find_checkpoint(own_run, str(own_run / "mine [v1]"))
    restore(model_variables(model), path)
    assert one_value(model) == 6.0
    remove_checkpoint(path)
    assert not list(own_run.glob("mine*"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_checkpoint_leaves_nothing(tmp_path, model, monkeypatch, error):
    def write(self, path):
        Path(path + ".index").write_text("half")
        raise error

    monkeypatch.setattr(tf.train.Checkpoint, "write", write)
    with pytest.raises(error):
        write_checkpoint(model_variables(model), tmp_path, 7)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_reading_a_checkpoint(tmp_path, run, model, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    copy = shutil.copytree(run, tmp_path / "run [v1]")
    restore(model_variables(model), find_checkpoint(copy))
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", ["run", "run [v1]"])
@pytest.mark.parametrize("part", ["data-00000-of-00001", "index"])
def test_a_missing_file_is_not_called_damaged(tmp_path, run, model, name, part):
    copy = shutil.copytree(run, tmp_path / name)
    path = find_checkpoint(copy)
    Path(f"{path}.{part}").unlink()
    with pytest.raises(DamagedCheckpointError, match="it lacks a file") as caught:
        restore(model_variables(model), path)
    assert "damaged" not in str(caught.value)


def weights_in_file(file):
    """Return the content of the file of step 300, and the offset of its weights."""
    content = file.read_bytes()
    return content, content.index(np.full(8, 6.0, np.float32).tobytes())


@pytest.mark.parametrize("damage", ["empty index", "half an index", "cut", "changed"])
def test_a_damaged_checkpoint_is_an_error_and_changes_no_weight(own_run, model, damage):
    index = own_run / "model.ckpt-300.index"
    data = own_run / "model.ckpt-300.data-00000-of-00001"
    content, place = weights_in_file(data)
    if "index" in damage:
        half = index.stat().st_size // 2 if damage.startswith("half") else 0
        index.write_bytes(index.read_bytes()[:half])
    else:
        rest = b"\1" + content[place + 1 :] if damage == "changed" else b""
        data.write_bytes(content[:place] + rest)
    fill(model, 7.0)
    with pytest.raises(DamagedCheckpointError) as caught:
        restore(model_variables(model), find_checkpoint(own_run), "Buy a disk.")
    first, *_, last = str(caught.value).splitlines()
    assert "cannot restore checkpoint" in first
    assert "model.ckpt-300: it is damaged" in first
    assert last == "Buy a disk."
    assert len(str(caught.value).splitlines()) <= 3
    assert one_value(model) == 7.0


@pytest.mark.parametrize(
    "other",
    [
        {"hidden_size": 16},
        {"num_encoder_layers": 2},
        {"target_vocab_size": 12, "source_vocab_size": 12},
    ],
)
def test_a_checkpoint_of_another_model_is_an_error_and_changes_no_weight(run, other):
    model = tiny_model(**other)
    fill(model, 7.0)
    with pytest.raises(UserError, match="other hparams"):
        restore(model_variables(model), find_checkpoint(run))
    assert one_value(model) == 7.0


def test_a_model_with_two_weights_of_one_name_is_refused():
    """A checkpoint would have only one of them."""
    layers = [keras.layers.Dense(2, name="dense") for _ in range(2)]
    for layer in layers:
        layer.build((None, 2))
    model = keras.Model(name="twins")
    model.layers_of_one_name = layers
    with pytest.raises(ValueError, match="Two variables have the same path"):
        model_variables(model)


@pytest.mark.parametrize("end", ["", ".index", ".data-00000-of-00001"])
def test_a_checkpoint_is_found_by_the_path_of_any_of_its_files(run, end):
    path = str(run / "model.ckpt-200")
    assert find_checkpoint("elsewhere", path + end) == path


@pytest.mark.parametrize(
    ("which", "next_step"),
    [("latest", "t2t train"), ("best", "t2t train"), ("averaged", "t2t average")],
)
def test_a_missing_checkpoint_has_the_command_that_makes_it(tmp_path, which, next_step):
    with pytest.raises(UserError, match=f"no {which} checkpoint in .*`{next_step}"):
        find_checkpoint(tmp_path, which)


def test_only_whole_names_with_a_step_are_checkpoints(tmp_path):
    for name in ("model.ckpt-9", "model.ckpt-10", "model.ckpt-8.damaged", "model.ckpt"):
        (tmp_path / f"{name}.index").touch()
    (tmp_path / "model.ckpt-11.data-00000-of-00001").touch()
    found = [str(tmp_path / f"model.ckpt-{step}") for step in (9, 10)]
    assert all_checkpoints(tmp_path) == found
    assert latest_step(tmp_path) == 10
    assert latest_step(tmp_path / "empty") == 0


def test_a_renamed_checkpoint_has_no_step():
    assert step_in_name("run/model.ckpt-70") == 70
    assert step_in_name("run-3/final") is None
    assert step_in_name("run/averaged-70") is None


def test_the_last_checkpoints_are_the_newest_ones(tmp_path):
    for step in (9, 10, 100):
        (tmp_path / f"model.ckpt-{step}.index").touch()
    newest = [str(tmp_path / f"model.ckpt-{step}") for step in (10, 100)]
    assert last_checkpoints(tmp_path, 2) == newest
    with pytest.raises(UserError, match=r"received last=4.*of step 9, 10, 100"):
        last_checkpoints(tmp_path, 4)


@pytest.mark.parametrize("find", [all_checkpoints, find_checkpoint, latest_step])
def test_a_folder_that_cannot_be_listed_does_not_count_as_empty(run, monkeypatch, find):
    """Permissions do not stop root, who may run the tests."""

    def refuse(folder="."):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UserError, match=r"^cannot list .*Permission denied"):
        find(run)
