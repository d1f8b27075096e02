"""Mistakes about a run are answered before TensorFlow is imported."""

from __future__ import annotations

import json
import math
import re

import pytest

from t2t_repro.cli.main import main
from tests.support.command_lines import answers_without_tensorflow

BATCH, PREFER, BEAMS = (
    f"--decode_hparams={setting}"
    for setting in ("batch_size=5", "prefer_unrepaired=true", "return_beams=true")
)
MISTAKES = [
    (["train", "--train_steps=30"], 2, "received train_steps=30, but the run"),
    (["train", "--random_seed=7"], 1, "random_seed is 1 there, 7 now"),
    (["decode", BATCH], 2, "expected at least 32 tokens"),
    (["evaluate", BATCH], 2, "at least 32 tokens"),
    (["evaluate", PREFER], 2, "prefer_unrepaired would have no effect: outputs of"),
    (["decode", "--checkpoint_path=model.ckpt-7"], 1, "received checkpoint path"),
    (["export", "--export_dir=e", "--checkpoint_path=x"], 1, "checkpoint path 'x'"),
    (["export", "--export_dir=."], 1, "received the new folder ., which exists"),
    (["export", "--export_dir=e", "--format=onnx"], 2, "invalid choice: 'onnx'"),
    (["export", "--export_dir=e", BEAMS], 2, "return_beams would have no effect: `t2t"),
    (["average", "--last=999"], 1, "received last=999"),
]


def test_mistakes_about_a_run_need_no_tensorflow(trained, tmp_path):
    run = ["--output_dir", str(trained.output_dir)]
    commands = [[*command, *run] for command, *_ in MISTAKES]
    answers = answers_without_tensorflow(commands, tmp_path)
    for (code, _, errors), (_, *expected) in zip(answers, MISTAKES, strict=True):
        assert [code, expected[1] in errors] == [expected[0], True], errors


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--problem=text_pairs", "--data_dir=gs://bucket/x"],
        ["train", "--output_dir=gs://bucket/x"],
        ["train", "--output_dir=run", "--warm_start_from=gs://bucket/x"],
        ["train", "--t2t_usr_dir=gs://bucket/x"],
        ["datagen", "--problem=text_pairs", "--train_source=gs://bucket/x"],
        ["datagen", "--problem=text_pairs", "--tmp_dir=gs://bucket/x"],
        ["decode", "--output_dir=run", "--checkpoint_path=gs://bucket/x"],
        ["decode", "--output_dir=run", "--decode_from_file", "a", "gs://bucket/x"],
        ["decode", "--output_dir=run", "--decode_to_file=gs://bucket/x"],
        ["export", "--output_dir=run", "--export_dir=gs://bucket/x"],
        ["compare", "--reference=gs://bucket/x", "file", "file"],
    ],
)
def test_remote_paths_are_refused_at_once(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    errors = capsys.readouterr().err
    assert re.match(r"t2t \w+: received \S+ gs:/+bucket/x, .*: mount the", errors)
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_tensorflow_cannot_load_is_refused_at_once(tmp_path, capsys):
    export_dir = str(tmp_path / "export [v1]")
    assert main(["export", "--output_dir=run", "--export_dir", export_dir]) == 1
    assert "expected a path without [ and \\" in capsys.readouterr().err


def test_existing_translations_are_scored_without_tensorflow(tmp_path):
    (tmp_path / "hypothesis").write_text("the cat sat on the mat\na dog\n")
    (tmp_path / "reference").write_text("the cat sat on the mat\na dog barks\n")
    files = [f"--{name}={tmp_path / name}" for name in ("hypothesis", "reference")]
    ((code, out, errors),) = answers_without_tensorflow(
        [["evaluate", *files]], tmp_path
    )
    assert code == 0, errors
    report = json.loads(out)
    assert (report["sentences"], report["length_ratio"]) == (2, 8 / 9)
    assert report["bleu"]["signature"].startswith("nrefs:1|case:mixed")
    # exp(1 - 9 / 8), because all n-grams of the translations are right
    assert report["bleu"]["value"] == pytest.approx(100 * math.exp(-1 / 8))


@pytest.mark.parametrize(
    ("flags", "code", "answer"),
    [
        (["--hypothesis=h"], 2, "--hypothesis and --reference go together"),
        (["--hypothesis=h", "--reference=r", "--split=dev"], 2, "and --split"),
        (["--hypothesis=h", "--reference=r", "--output_dir=x"], 2, "and --output_dir"),
        (
            ["--hypothesis=h", "--reference=r", "--engine=ctranslate2"],
            2,
            "and --engine",
        ),
        (["--hypothesis=h", "--reference=r", "--quantization=int8"], 2, "and --quanti"),
        (["--hypothesis=none", "--reference=r"], 1, "received text file none"),
        ([], 2, "--output_dir is missing"),
    ],
)
def test_wrong_flags_for_existing_translations_are_refused(capsys, flags, code, answer):
    assert main(["evaluate", *flags]) == code
    assert answer in capsys.readouterr().err
