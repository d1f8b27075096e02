"""Old conversions are removed, but never one that is used or still the newest."""

from __future__ import annotations

import os

import pytest

from t2t_repro.features.ctranslate2 import ctranslate2_system
from t2t_repro.features.ctranslate2.ctranslate2_system import (
    DESCRIPTION_FILE,
    CTranslate2System,
    checkpoint_digest,
    prune_conversions,
)
from tests.features.ctranslate2.test_conversion import write_export


@pytest.fixture
def run(tmp_path):
    """Return the folder of a run with a checkpoint and a best one."""
    (tmp_path / "run" / "best").mkdir(parents=True)
    for name in ("model.ckpt-60", "best/model.ckpt-40"):
        (tmp_path / "run" / f"{name}.index").write_text(name)
    return tmp_path / "run"


def convert(run, name, quantization, checkpoint="model.ckpt-60", seconds=0):
    """Write a conversion that is some seconds old."""
    digest = checkpoint_digest(str(run / checkpoint))
    folder = run / "ctranslate2" / name
    write_export(folder, quantization=quantization, checkpoint_digest=digest)
    os.utime(folder / DESCRIPTION_FILE, (10**9 - seconds,) * 2)
    return folder


def left(run):
    return sorted(path.name for path in (run / "ctranslate2").iterdir())


def test_the_newest_conversion_of_each_format_is_kept(run, caplog):
    caplog.set_level("INFO", "t2t_repro")
    convert(run, "old float32", "float32", seconds=7)
    convert(run, "int8", "int8", seconds=8)
    convert(run, "old int8", "int8", seconds=9)
    new = convert(run, "new", "float32")
    prune_conversions(run, new)
    assert left(run) == ["int8", "new"]
    assert sorted(message.rpartition("/")[2] for message in caplog.messages) == [
        "old float32",
        "old int8",
    ]


def test_the_new_conversion_is_kept_whatever_the_clock_says(run):
    convert(run, "later", "float32")
    new = convert(run, "new", "float32", seconds=9)
    prune_conversions(run, new)
    assert left(run) == ["new"]


def test_a_conversion_whose_checkpoint_is_gone_is_removed(run):
    convert(run, "of the best", "int16", "best/model.ckpt-40")
    convert(run, "of one that changed", "int8")
    (run / "model.ckpt-60.index").write_text("another")
    new = convert(run, "new", "float32")
    prune_conversions(run, new)
    assert left(run) == ["new", "of the best"]


def test_a_conversion_of_a_checkpoint_elsewhere_is_kept_while_that_exists(run):
    elsewhere = run.parent / "model.ckpt-9"
    index = run.parent / "model.ckpt-9.index"
    index.write_text("nine")
    write_export(
        run / "ctranslate2" / "elsewhere",
        quantization="int8",
        checkpoint=str(elsewhere),
        checkpoint_digest=checkpoint_digest(str(elsewhere)),
    )
    new = convert(run, "new", "float32")
    prune_conversions(run, new)
    assert left(run) == ["elsewhere", "new"]
    index.unlink()
    prune_conversions(run, new)
    assert left(run) == ["new"]


def test_a_conversion_that_a_system_uses_is_kept(run):
    used = convert(run, "used", "float32", seconds=9)
    system = CTranslate2System(used)
    new = convert(run, "new", "float32")
    prune_conversions(run, new)
    assert left(run) == ["new", "used"]
    del system
    prune_conversions(run, new)
    assert left(run) == ["new"]


def test_an_error_of_the_file_system_is_one_line(run, monkeypatch, caplog):
    def denied(path):
        raise PermissionError(13, "Permission denied", str(path))

    for name in ("one", "two"):
        convert(run, name, "int8")
    new = convert(run, "new", "float32")
    monkeypatch.setattr(ctranslate2_system, "_time_of", denied)
    prune_conversions(run, new)
    expected = f"cannot remove older conversions in {new.parent}: Permission denied"
    assert caplog.messages == [expected]
    assert left(run) == ["new", "one", "two"]


def test_a_conversion_that_cannot_be_read_is_left_alone(run):
    new = convert(run, "new", "float32")
    (run / "ctranslate2" / "unreadable" / DESCRIPTION_FILE).mkdir(parents=True)
    prune_conversions(run, new)
    assert left(run) == ["new", "unreadable"]


def test_what_is_no_conversion_is_left_alone_but_for_interrupted_ones(run):
    new = convert(run, "new", "float32")
    convert(run, "interrupted.incomplete", "int8")
    damaged = convert(run, "damaged", "float32")
    (damaged / DESCRIPTION_FILE).write_text("{")
    (run / "ctranslate2" / "notes").mkdir()
    prune_conversions(run, new)
    assert left(run) == ["damaged", "new", "notes"]
