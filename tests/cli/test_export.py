"""Refusals of `t2t export`; tests/features/saved_model loads and calls an export."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from t2t_repro.cli.main import main

HPARAMS = "beam_size=2,extra_length=20"


def export_arguments(trained, folder):
    return [
        "export",
        *("--output_dir", str(trained.output_dir), "--export_dir", str(folder)),
        *("--decode_hparams", HPARAMS),
    ]


def test_an_existing_folder_is_refused(trained, tmp_path, capsys):
    assert main(export_arguments(trained, tmp_path)) == 1
    errors = capsys.readouterr().err
    assert f"received export folder {tmp_path}, which exists" in errors
    assert "Traceback" not in errors


def test_an_unknown_format_is_refused(trained, tmp_path, capsys):
    arguments = [*export_arguments(trained, tmp_path / "e"), "--format", "onnx"]
    assert main(arguments) == 2
    assert "onnx" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["write_beam_scores=true", "return_beams=true"])
def test_an_option_that_the_export_does_not_read_is_refused(
    trained, tmp_path, capsys, option
):
    arguments = ["export", "--output_dir", str(trained.output_dir)]
    arguments += ["--export_dir", str(tmp_path / "e"), "--decode_hparams", option]
    assert main(arguments) == 2
    name = option.partition("=")[0]
    expected = f"{name} would have no effect: `t2t export` does not read it"
    assert expected in capsys.readouterr().err


def test_a_full_disk_is_one_line_and_leaves_nothing(
    trained, tmp_path, capsys, monkeypatch
):
    def fill_up(served, folder, signatures):
        (Path(folder) / "saved_model.pb").write_bytes(b"half")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", fill_up)
    assert main(export_arguments(trained, tmp_path / "e")) == 1
    errors = capsys.readouterr().err
    assert "t2t export: cannot write" in errors
    assert "No space left on device" in errors
    assert list(tmp_path.iterdir()) == []


def test_the_named_checkpoint_is_exported(trained, tmp_path, capsys):
    arguments = [*export_arguments(trained, tmp_path / "e"), "--checkpoint_path", "x"]
    assert main(arguments) == 1
    assert "received checkpoint path 'x'" in capsys.readouterr().err
