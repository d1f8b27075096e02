"""Whole processes: stopped, killed, replicated, and trained to the end.

All tests here are slow. Without them, test_stop.py stops a process, and
tests/training/test_resume.py stops and kills runs within the process of the test.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from t2t_repro.training.checkpoint_paths import all_checkpoints
from tests.support.trained_system import printed_by, weights_at

PATIENCE = 120  # seconds in which a process must do something
STEPS_AFTERWARDS = 6


def started(arguments):
    """Start a process of the command line."""
    return subprocess.Popen(
        [sys.executable, "-m", "t2t_repro.cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )


def wait_until(happened, process):
    """Wait until a process has done something, before it ends."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)


def training_lines(folder):
    """Return the metrics of every step, in the order of writing."""
    path = folder / "metrics.jsonl"
    if not path.exists():
        return []
    # A running process may not have finished the last line.
    whole = path.read_text(encoding="utf-8").split("\n")[:-1]
    records = [json.loads(line) for line in whole]
    return [record for record in records if record["split"] == "train"]


@pytest.fixture(scope="module")
def train(trained):
    """Return a function that makes a command: with dropout, one line per step."""

    def command(folder, steps):
        return [
            "train",
            *(*trained.arguments[:-1], str(folder), "--train_steps", str(steps)),
            *("--log_step_count_steps", "1", "--save_checkpoints_steps", "5"),
            *("--eval_sentences", "0", "--average_last", "0"),
            *("--attention_samples", "0"),
        ]

    return command


@pytest.fixture(scope="module")
def stopped(train, tmp_path_factory):
    """Stop one run by SIGTERM and kill another.

    Returns:
        Their folders, exit codes, outputs (standard output and error), and the metrics
        of the second when it was killed.
    """
    folders = [tmp_path_factory.mktemp(name) for name in ("terminated", "killed")]
    processes = [started(train(folder, 100_000)) for folder in folders]
    terminated, killed = processes
    wait_until(lambda: len(training_lines(folders[0])) >= 7, terminated)
    terminated.send_signal(signal.SIGTERM)
    wait_until(lambda: len(training_lines(folders[1])) >= 12, killed)
    killed.kill()
    outputs = [process.communicate() for process in processes]
    codes = [process.returncode for process in processes]
    return folders, codes, outputs, training_lines(folders[1])


@pytest.fixture(scope="module")
def continued(train, stopped, tmp_path_factory):
    """Resume both runs, and train an uninterrupted one for the same steps."""
    folders = [*stopped[0], tmp_path_factory.mktemp("uninterrupted")]
    last = max(training_lines(folder)[-1]["step"] for folder in stopped[0])
    for folder in folders:
        printed_by(train(folder, last + STEPS_AFTERWARDS))
    return folders


@pytest.mark.slow
def test_a_terminated_run_says_how_to_resume(stopped):
    (terminated, _), codes, ((out, errors), _), _ = stopped
    assert codes[0] == 143
    assert out == ""
    (step,) = re.findall(r"stopped at step (\d+) of 100000; `t2t train", errors)
    assert all_checkpoints(terminated)[-1].endswith(f"model.ckpt-{step}")
    assert "resumes the run" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
def test_a_terminated_run_has_saved_its_last_step(stopped):
    (terminated, _), *_ = stopped
    step = training_lines(terminated)[-1]["step"]
    assert all_checkpoints(terminated)[-1].endswith(f"model.ckpt-{step}")


@pytest.mark.slow
def test_a_killed_run_resumes_from_its_last_checkpoint(stopped, continued):
    (_, killed), codes, _, before = stopped
    assert codes[1] == -signal.SIGKILL
    after = training_lines(killed)
    assert [line["step"] for line in after] == list(range(1, len(after) + 1))
    kept = [line for line in before if line in after]
    assert kept == after[: len(kept)]
    # The lines of the steps after the last checkpoint are new.
    assert len(kept) >= 10
    assert len(kept) % 5 == 0
    assert len(before) - len(kept) <= 5


@pytest.mark.slow
@pytest.mark.parametrize("run", [0, 1], ids=["terminated", "killed"])
def test_a_resumed_run_has_the_losses_of_an_uninterrupted_one(continued, run):
    expected = {line["step"]: line["loss"] for line in training_lines(continued[2])}
    for line in training_lines(continued[run]):
        assert line["loss"] == expected[line["step"]]


@pytest.mark.slow
@pytest.mark.parametrize("run", [0, 1], ids=["terminated", "killed"])
def test_a_resumed_run_has_the_weights_of_an_uninterrupted_one(continued, run):
    weights, expected = (
        weights_at(all_checkpoints(continued[number])[-1]) for number in (run, 2)
    )
    for name, values in expected.items():
        np.testing.assert_array_equal(weights[name], values)


REPLICATED = (
    "hidden_size=16,filter_size=32,num_heads=2,num_hidden_layers=1,max_length=32,"
    "min_length_bucket=8,length_bucket_step=2.0,layer_prepostprocess_dropout=0.0"
)
REPLICATED_STEPS = 8


def replicated_arguments(folder, replicas, batch_size):
    return [
        "train",
        *("--problem", "algorithmic_identity", "--hparams_set", "transformer_tiny"),
        *("--hparams", f"{REPLICATED},batch_size={batch_size}", "--xla", "off"),
        *("--data_dir", str(folder / "data"), "--output_dir", f"{folder}/{replicas}"),
        *("--train_steps", str(REPLICATED_STEPS), "--log_step_count_steps", "1"),
        *("--eval_sentences", "0", "--average_last", "0"),
        *("--attention_samples", "0"),
        *("--cpu_replicas", str(replicas)),
    ]


@pytest.mark.slow
def test_two_replicas_train_like_one_with_twice_the_batch(tmp_path):
    printed_by(replicated_arguments(tmp_path, 1, 512))
    process = started(replicated_arguments(tmp_path, 2, 256))
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    one, two = (training_lines(tmp_path / number) for number in "12")
    assert len(one) == len(two) == REPLICATED_STEPS
    for alone, replicated in zip(one, two, strict=True):
        for name in ("target_tokens_per_step", "padding_share", "learning_rate"):
            assert replicated[name] == alone[name]
        for name in ("loss", "nll", "gradient_norm"):
            assert replicated[name] == pytest.approx(alone[name], abs=2e-5)


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
