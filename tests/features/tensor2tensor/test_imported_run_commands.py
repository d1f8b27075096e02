"""An imported model is a run like any other, for every command."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.features.tensor2tensor.checkpoint_import import import_checkpoint
from tests.support.eager import train_eagerly
from tests.support.old_models import DATA, NO_DROPOUT, STEP, copied, expected, request
from tests.support.trained_system import printed_by, weights_at


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a model, the data that it was trained on, and its text."""
    folder = tmp_path_factory.mktemp("imported")
    copied("v3", folder / "model")
    shutil.copytree(DATA, folder / "data")
    dev = folder / "data" / "translate_golden-dev-00000-of-00001"
    shutil.copyfile(dev, dev.with_name("translate_golden-train-00000-of-00001"))
    texts, _ = expected("v3")
    for name in ("sources", "beam"):
        lines = "".join(f"{line}\n" for line in texts[name])
        (folder / f"{name}.txt").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(folder):
    given = [str(folder / "model"), "--data_dir", str(folder / "data")]
    output_dir = str(folder / "run")
    printed = printed_by(
        ["import", "--from", "tensor2tensor", *given, "--output_dir", output_dir]
    )
    assert "largest difference of logits:" in printed
    assert f"data: {folder / 'data'}" in printed
    return output_dir


def test_evaluate_scores_the_dev_text_of_the_shards(run):
    printed = printed_by(["evaluate", "--output_dir", run, "--split", "dev"])
    assert json.loads(printed)["bleu"]["value"] > 1


def test_score_and_attention_read_subwords_of_tensor2tensor(run, folder):
    pairs = ["--source", str(folder / "sources.txt"), "--target"]
    scored = printed_by(
        ["score", "--output_dir", run, *pairs, str(folder / "beam.txt")]
    )
    assert len(scored.splitlines()) == len(expected("v3")[0]["beam"])
    page = folder / "attention.html"
    printed_by(
        [
            *("attention", "--output_dir", run, "--source", "They wait for us."),
            *("--html", str(page)),
        ]
    )
    assert "wait" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("format", ["saved_model", "ctranslate2"])
def test_exports_translate_alike(run, folder, format):
    export_dir = str(folder / format)
    printed = printed_by(
        ["export", "--output_dir", run, "--export_dir", export_dir, "--format", format]
    )
    texts, _ = expected("v3")
    if format == "saved_model":
        served = tf.saved_model.load(export_dir).signatures["serving_default"]
        outputs = served(inputs=tf.constant(texts["sources"]))["outputs"]
        assert [text.decode() for text in outputs.numpy()] == texts["beam"]
    else:
        assert "Compared with the trained model" in printed


def test_training_goes_on_with_the_step_and_the_moments_of_adam(folder, monkeypatch):
    asked = request(
        folder / "model",
        data_dir=str(folder / "data"),
        hparams=f"{NO_DROPOUT},min_length_bucket=64,max_length=64",
    )
    run = folder / "trained"
    import_checkpoint(asked, run)
    before = weights_at(run / f"model.ckpt-{STEP}")
    more = ["--train_steps", str(STEP + 2), "--eval_sentences", "0"]
    train_eagerly(monkeypatch)
    printed_by(["train", "--output_dir", str(run), *more, "--no_final_score"])
    after = weights_at(run / f"model.ckpt-{STEP + 2}")
    changes = [np.abs(after[path] - before[path]).max() for path in before]
    # A step of Adam without its moments would be as large as the learning rate.
    assert 0 < max(changes) < 0.02
    logged = [*map(json.loads, (run / "metrics.jsonl").read_text().splitlines())]
    losses = [record["loss"] for record in logged if record["split"] == "train"]
    assert all(loss < 3 for loss in losses)
    printed_by(["average", "--output_dir", str(run), "--last", "2"])
