"""Whole processes: killed, and trained to the end.

All tests here are slow. Without them, tests/training/test_resume.py kills runs within
the process of the test.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from t2t_repro.training.checkpoint_paths import all_checkpoints
from tests.support.trained_system import printed_by, weights_at
from tests.support.waiting import until

STEPS_AFTERWARDS = 6


def training_lines(folder):
    """Return the metrics of every step, in the order of writing."""
    path = folder / "metrics.jsonl"
    if not path.exists():
        return []
    # A running process may not have finished the last line.
    whole = path.read_text(encoding="utf-8").split("\n")[:-1]
    records = [json.loads(line) for line in whole]
    return [record for record in records if record["split"] == "train"]


@pytest.mark.slow
def test_a_killed_run_resumes_like_an_uninterrupted_one(trained, tmp_path):
    def command(name, steps):
        return [
            "train",
            *(*trained.arguments[:-1], str(tmp_path / name)),
            *("--train_steps", str(steps), "--log_step_count_steps", "1"),
            *("--save_checkpoints_steps", "5", "--average_last", "0"),
            *("--eval_sentences", "0", "--attention_samples", "0"),
        ]

    killed = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "t2t_repro.cli.main", *command("killed", 100_000)],
        stderr=subprocess.DEVNULL,
    )
    until(
        lambda: process.poll() is not None or len(training_lines(killed)) >= 12,
        looks=6000,
    )
    process.kill()
    assert process.wait() == -signal.SIGKILL
    before = training_lines(killed)
    for name in ("killed", "uninterrupted"):
        printed_by(command(name, before[-1]["step"] + STEPS_AFTERWARDS))
    after, expected = training_lines(killed), training_lines(tmp_path / "uninterrupted")
    assert [x["step"] for x in after] == list(range(1, len(after) + 1))
    assert [x["loss"] for x in after] == [x["loss"] for x in expected]
    # The lines of the steps after the last checkpoint are new.
    kept = [line for line in before if line in after]
    assert kept == after[: len(kept)]
    assert len(kept) >= 10
    assert len(kept) % 5 == 0
    assert len(before) - len(kept) <= 5
    weights, others = (
        weights_at(all_checkpoints(tmp_path / name)[-1])
        for name in ("killed", "uninterrupted")
    )
    for name, values in others.items():
        np.testing.assert_array_equal(weights[name], values)


# Without smoothing, gradients vanish once the task is learned, and Adam's small epsilon
# would turn the rest of them into large updates.
# One shape of batches and two heads, which learn positions faster than four. The
# learning rate falls to zero at the end, so that rounding, which differs between
# processors, does not decide about the last of the 500.
LEARNING = (
    "hidden_size=64,filter_size=128,num_heads=2,num_hidden_layers=1,batch_size=2048,"
    "max_length=24,min_length_bucket=24,label_smoothing=0.0,"
    "learning_rate_constant=0.5,learning_rate_warmup_steps=100,"
    "learning_rate_schedule=constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"
    "*linear_decay,learning_rate_decay_steps=400,"
    "optimizer_adam_epsilon=1e-5"
)


@pytest.mark.slow
def test_every_held_out_sequence_is_reversed(tmp_path):
    """It needs all that copying needs, and the length of the source."""
    problem = "algorithmic_reverse"
    data_dir, run = tmp_path / "data", ("--output_dir", str(tmp_path / "run"))
    printed_by(
        [
            *("train", *run, "--problem", problem, "--data_dir", str(data_dir)),
            *("--hparams_set", "transformer_tiny", "--hparams", LEARNING),
            *("--train_steps", "1200", "--eval_sentences", "0", "--no_final_score"),
            *("--save_checkpoints_steps", "25", "--average_last", "10"),
            *("--attention_samples", "0"),
        ]
    )
    target = tmp_path / "translations"
    averaged = ("--checkpoint_path", "averaged", "--decode_to_file", str(target))
    printed_by(["evaluate", *run, "--split", "test", *averaged])
    expected = (data_dir / f"{problem}-test.targets.txt").read_text().splitlines()
    found = target.read_text().splitlines()
    assert len(found) == 500
    wrong = [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]]
    assert wrong == []
