"""Stop `t2t train` by a signal, as a keyboard does, in a real process.

test_end_to_end.py stops it as a cluster does, by SIGTERM.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_repro.training.checkpoint_paths import all_checkpoints, step_of


@pytest.fixture
def own_run(trained, tmp_path):
    """Return a copy of the trained run."""
    return Path(shutil.copytree(trained.output_dir, tmp_path / "run"))


def test_a_stopped_training_is_saved_and_has_the_exit_code_of_its_signal(own_run):
    program = [sys.executable, "-m", "t2t_repro.cli.main", "train"]
    flags = ["--train_steps", "1000000", "--eval_sentences", "0", "--xla", "off"]
    flags += ["--attention_samples", "0"]
    flags += ["--log_step_count_steps", "5", "--local_eval_frequency", "1000000"]
    process = subprocess.Popen(
        [*program, "--output_dir", str(own_run), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        # A shell lets its background jobs ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    for line in process.stderr:
        if line.startswith("step "):
            process.send_signal(signal.SIGINT)
            break
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert out == ""
    (step,) = re.findall(r"stopped at step (\d+) of 1000000; `t2t train", errors)
    assert step_of(all_checkpoints(own_run)[-1]) == int(step)
    assert "Traceback" not in errors
