"""`t2t train --ensemble`: real processes, stopped, resumed and compared with a run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from t2t_repro.runs import System

pytestmark = pytest.mark.slow
HPARAMS = (
    "hidden_size=16,filter_size=16,num_heads=2,num_hidden_layers=1,max_length=64,"
    "batch_size=512"
)
PROGRAM = (sys.executable, "-m", "t2t_repro.cli.main")


def flags(data_dir, output_dir, steps):
    return [
        *("--problem", "algorithmic_identity", "--data_dir", str(data_dir)),
        *("--output_dir", str(output_dir), "--hparams_set", "transformer_tiny"),
        *("--hparams", HPARAMS, "--train_steps", str(steps), "--xla", "off"),
        *("--save_checkpoints_steps", "10", "--log_step_count_steps", "5"),
        *("--eval_sentences", "0", "--attention_samples", "0", "--average_last", "2"),
    ]


def run(*arguments):
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def weights_of(folder):
    return System.load(folder).model.get_weights()


def test_members_are_the_runs_of_their_seeds_even_if_stopped_and_resumed(tmp_path):
    data_dir, ensemble = tmp_path / "data", tmp_path / "ensemble"
    # The steps are those of the schedule, so the stopped training run has them as well.
    stopped = subprocess.Popen(
        [*PROGRAM, "train", "--ensemble", "2", *flags(data_dir, ensemble, 5000)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in stopped.stderr:
        if line.startswith("member 2: step "):
            # The stop of a service signals all its processes.
            children = Path(f"/proc/{stopped.pid}/task/{stopped.pid}/children")
            for pid in (*children.read_text().split(), stopped.pid):
                os.kill(int(pid), signal.SIGTERM)
            break
    out, errors = stopped.communicate(timeout=120)
    assert stopped.returncode == 143, errors
    assert out == ""
    (reached,) = re.findall(r"stopped at step (\d+(?: and \d+)?) of 5000", errors)
    assert "Traceback" not in errors

    # A member can be far ahead of the other when both are stopped.
    steps = max(map(int, reached.split(" and "))) + 40
    resumed = run("train", "--output_dir", ensemble, "--train_steps", steps)
    assert resumed.returncode == 0, resumed.stderr
    assert "member 1: resuming from step" in resumed.stderr
    assert "BLEU on test (500 sentences" in resumed.stdout
    assert f"t2t decode --output_dir {ensemble}\n" in resumed.stdout

    alone = tmp_path / "alone"
    single = run("train", *flags(data_dir, alone, steps), "--random_seed", 2)
    assert single.returncode == 0, single.stderr
    expected = weights_of(alone)
    for own, one in zip(weights_of(ensemble / "member-2"), expected, strict=True):
        np.testing.assert_allclose(own, one, rtol=1e-4, atol=1e-5)
    other = zip(weights_of(ensemble / "member-1"), expected, strict=True)
    assert any(np.abs(a - b).max() > 0.01 for a, b in other)

    scored = run("evaluate", "--output_dir", ensemble, "--split", "dev")
    assert scored.returncode == 0, scored.stderr
    assert f"{ensemble}/member-1/averaged/model.ckpt-{steps}," in scored.stdout


def test_members_save_if_the_main_process_is_killed(tmp_path):
    ensemble = tmp_path / "ensemble"
    killed = subprocess.Popen(
        [
            *(*PROGRAM, "train", "--ensemble", "2"),
            *flags(tmp_path / "data", ensemble, 100_000),
            *("--save_checkpoints_steps", "100000"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in killed.stderr:
        if line.startswith("member 2: step "):
            killed.kill()
            break
    # Until the last member has closed it.
    _, errors = killed.communicate(timeout=120)
    assert "Traceback" not in errors
    for member in ("member-1", "member-2"):
        assert list((ensemble / member).glob("model.ckpt-*.index")), member
