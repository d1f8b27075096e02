from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from t2t_repro.cli.main import main
from t2t_repro.text.lines import as_line
from tests.support.trained_system import printed_by

HPARAMS = "beam_size=2,extra_length=20"

# Everything that a program needs to serve the system.
SERVE = """
import json, sys
import tensorflow as tf, tensorflow_text
signatures = tf.saved_model.load(sys.argv[1]).signatures
sentences = tf.constant(json.load(open(sys.argv[2])))
found = {name: signatures[name](sentences) for name in ("serving_default", "n_best")}
json.dump(
    {
        name: {"outputs": [[text.decode() for text in row] for row in
                           tf.reshape(values["outputs"], [len(sentences), -1]).numpy()],
               "scores": values["scores"].numpy().tolist()}
        for name, values in found.items()
    },
    sys.stdout,
)
assert not [name for name in sys.modules if name.startswith("t2t_repro")]
"""


def export_arguments(trained, folder):
    return [
        "export",
        *("--output_dir", str(trained.output_dir), "--export_dir", str(folder)),
        *("--decode_hparams", HPARAMS),
    ]


@pytest.fixture(scope="module")
def sentences(trained):
    own = trained.text["test", "source"].read_text().splitlines()
    long = "three times: the horse is blue . " * 12
    return [*own, "", "漢字 🙂", " ", long, "\u200b"]


@pytest.fixture(scope="module")
def served(trained, sentences, tmp_path_factory):
    """Return the output of a program that uses TensorFlow without this package."""
    folder = tmp_path_factory.mktemp("export")
    printed = printed_by(export_arguments(trained, folder / "system"))
    assert printed.startswith(f"{folder / 'system'}\n")
    (folder / "sentences.json").write_text(json.dumps(sentences))
    command = [sys.executable, "-c", SERVE, "system", "sentences.json"]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def decoded(trained, sentences, tmp_path_factory):
    """Return the cells of `t2t decode` with all hypotheses and scores."""
    path = tmp_path_factory.mktemp("decode") / "source"
    path.write_text("".join(f"{sentence}\n" for sentence in sentences))
    hparams = f"{HPARAMS},return_beams=true,write_beam_scores=true"
    printed = printed_by(
        [
            "decode",
            *("--output_dir", str(trained.output_dir)),
            *("--decode_from_file", str(path), "--decode_hparams", hparams),
        ]
    )
    return [line.split("\t") for line in printed.split("\n")[:-1]]


def as_cell(text):
    return as_line(text.replace("\t", " "))


def test_the_exported_system_translates_as_decode_does(served, decoded):
    outputs = [as_cell(row[0]) for row in served["serving_default"]["outputs"]]
    assert outputs == [cells[0] for cells in decoded]


def test_the_exported_system_scores_as_decode_does(served, decoded):
    scores = [float(cells[1]) for cells in decoded]
    assert served["serving_default"]["scores"] == pytest.approx(scores, abs=2e-4)


def test_empty_text_is_served_as_empty_text(served, sentences):
    outputs = served["serving_default"]["outputs"]
    assert outputs[sentences.index("")] == [""]


def test_n_best_are_the_hypotheses_of_decode(served, decoded):
    for row, cells in zip(served["n_best"]["outputs"], decoded, strict=True):
        texts = cells[::2]
        assert [as_cell(text) for text in row][: len(texts)] == texts


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
