"""Mistakes about a run are answered before TensorFlow is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from t2t_repro.cli.main import main
code = main(sys.argv[1:])
heavy = {"tensorflow", "keras", "tensorflow_text"} & set(sys.modules)
sys.exit(99 if heavy else code)
"""
PREFER = "--decode_hparams=prefer_unrepaired=true"


@pytest.mark.parametrize(
    ("command", "code", "answer"),
    [
        (["train", "--train_steps=30"], 2, "received train_steps=30, but the run"),
        (["train", "--random_seed=7"], 1, "random_seed is 1 there, 7 now"),
        (["decode", "--decode_hparams=batch_size=5"], 2, "expected at least 32 tokens"),
        (["evaluate", "--decode_hparams=batch_size=5"], 2, "at least 32 tokens"),
        (["evaluate", PREFER], 2, "prefer_unrepaired would have no effect: outputs of"),
        (["decode", "--checkpoint_path=model.ckpt-7"], 1, "received checkpoint path"),
        (["export", "--export_dir=e", "--checkpoint_path=x"], 1, "checkpoint path x"),
        (["average", "--last=999"], 1, "received last=999"),
    ],
)
def test_a_mistake_about_a_run_needs_no_tensorflow(trained, command, code, answer):
    arguments = [*command, "--output_dir", str(trained.output_dir)]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert answer in ended.stderr
    assert ended.returncode == code, ended.stderr
