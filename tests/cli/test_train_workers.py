"""Train on several workers: real processes on 127.0.0.1, described by TF_CONFIG.

All tests here are slow. Without them, test_cluster.py of
tests/training have the workers that TF_CONFIG names and the decisions of several.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from t2t_repro import catalogue
from t2t_repro.data.prepare import prepare
from tests.support.tiny_training import losses_of
from tests.support.trained_system import weights_at

STEPS = 30
HPARAMS = (
    "hidden_size=16,filter_size=16,num_heads=2,num_hidden_layers=1,max_length=64,"
    "min_length_bucket=64,batch_size=128,update_tokens=512,"
    "layer_prepostprocess_dropout=0,learning_rate_warmup_steps=10"
)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    prepare(catalogue.problem("algorithmic_identity"), folder)
    return folder


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def command(data_dir, output_dir, cpu_replicas, steps=STEPS):
    return [
        *(sys.executable, "-m", "t2t_repro.cli.main", "train"),
        *("--problem", "algorithmic_identity", "--data_dir", str(data_dir)),
        *("--output_dir", str(output_dir), "--hparams_set", "transformer_tiny"),
        *("--hparams", HPARAMS, "--train_steps", str(steps)),
        *("--log_step_count_steps", "1", "--local_eval_frequency", "1000"),
        *("--save_checkpoints_steps", "10", "--eval_sentences", "0"),
        *("--attention_samples", "0", "--average_last", "2", "--no_final_score"),
        *("--cpu_replicas", str(cpu_replicas), "--xla", "off"),
    ]


def start(arguments, folder, workers=1):
    """Start the workers, each with a folder of its own for its output."""
    hosts = [f"127.0.0.1:{port}" for port in free_ports(workers)]
    processes = []
    for number in range(workers):
        task = {"type": "worker", "index": number}
        config = {"cluster": {"worker": hosts}, "task": task}
        environment = os.environ | {"TMPDIR": str(folder)}
        if workers > 1:
            environment["TF_CONFIG"] = json.dumps(config)
        with (folder / f"{number}.txt").open("w") as output:
            processes.append(
                subprocess.Popen(
                    arguments, stdout=output, stderr=subprocess.STDOUT, env=environment
                )
            )
    return processes


def codes_of(processes):
    try:
        return [process.wait(timeout=1200) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def wait_for(path: Path, processes):
    for _ in range(12000):
        if path.exists():
            return
        assert [process.poll() for process in processes] == [None] * len(processes)
        time.sleep(0.1)
    raise TimeoutError(path)


def assert_same_weights(path, other, tolerance):
    expected = weights_at(other)
    assert expected
    for name, value in weights_at(path).items():
        np.testing.assert_allclose(value, expected[name], atol=tolerance, rtol=0)


@pytest.fixture(scope="module")
def single(data_dir, tmp_path_factory):
    """Train on one replica that adds up 4 steps."""
    folder = tmp_path_factory.mktemp("single")
    run = folder / "run"
    assert codes_of(start(command(data_dir, run, 1), folder)) == [0]
    size = "an update: 1 replica x 128 tokens x 4 micro-batches"
    assert size in (folder / "0.txt").read_text()
    return run


@pytest.fixture(scope="module")
def on_workers(data_dir, tmp_path_factory):
    """Train on 2 workers with 2 replicas each."""
    folder = tmp_path_factory.mktemp("workers")
    processes = start(command(data_dir, folder / "run", 2), folder, workers=2)
    assert codes_of(processes) == [0, 0]
    return folder


@pytest.mark.slow
def test_two_workers_with_two_replicas_train_like_one_replica(single, on_workers):
    expected, found = losses_of(single), losses_of(on_workers / "run")
    assert sorted(found) == sorted(expected) == list(range(1, STEPS + 1))
    # float32 sums in another order
    for step, loss in expected.items():
        assert found[step] == pytest.approx(loss, abs=1e-5)
    name = f"model.ckpt-{STEPS}"
    assert_same_weights(on_workers / "run" / name, single / name, 2e-6)
    for number in range(2):
        text = (on_workers / f"{number}.txt").read_text()
        assert "an update: 4 replicas x 128 tokens x 1 micro-batch" in text


@pytest.mark.slow
def test_the_chief_alone_writes(single, on_workers):
    def files(run):
        """Return the names without those parts that name a process."""
        return sorted(
            str(path.relative_to(run)).partition(".tfevents.")[0]
            for path in run.rglob("*")
        )

    assert files(on_workers / "run") == files(single)
    left = {path.name for path in on_workers.iterdir()}
    assert left == {"run", "0.txt", "1.txt"}  # TMPDIR is empty again
    assert "averaging" in (on_workers / "0.txt").read_text()
    assert "averaging" not in (on_workers / "1.txt").read_text()


def kill_one(run, step, number, folder, arguments):
    """Kill the chief, number 0, or the other one after a step; return all output."""
    folder.mkdir()
    processes = start(arguments, folder, workers=2)
    killed, left = processes[number], processes[1 - number]
    try:
        wait_for(run / f"model.ckpt-{step}.index", processes)
        killed.kill()
        killed.wait()
        assert left.wait(timeout=1200) == 75
    finally:
        left.kill()
        left.wait()
    for path in run.glob("model.ckpt-*"):
        if not path.name.startswith(f"model.ckpt-{step}."):
            path.unlink()
    return [(folder / f"{worker}.txt").read_text() for worker in range(2)]


@pytest.mark.slow
def test_killed_workers_resume_from_their_checkpoint(on_workers, data_dir, tmp_path):
    """Kill the other one after 10 steps, and the chief after 20."""
    run = tmp_path / "run"
    endless = command(data_dir, run, 2, steps=100_000)
    texts = {
        number: kill_one(run, step, number, tmp_path / str(step), endless)
        for step, number in ((10, 1), (20, 0))
    }
    for number, printed in texts.items():
        expected = (
            f"worker {1 - number} of 2 cannot reach another worker, which has stopped"
        )
        assert expected in printed[1 - number]
        advice = "Start all workers again: they resume from the last checkpoint"
        assert advice in printed[1 - number]
    ended = start(command(data_dir, run, 2), tmp_path, workers=2)
    assert codes_of(ended) == [0, 0]
    for number in range(2):
        assert "resuming from step 10" in texts[0][number]
        assert "resuming from step 20" in (tmp_path / f"{number}.txt").read_text()
    assert losses_of(run) == losses_of(on_workers / "run")
    name = f"model.ckpt-{STEPS}"
    assert_same_weights(run / name, on_workers / "run" / name, 0)


@pytest.mark.slow
def test_a_signal_to_one_worker_stops_all_at_one_step(data_dir, tmp_path):
    run = tmp_path / "run"
    processes = start(command(data_dir, run, 1, steps=100_000), tmp_path, workers=2)
    wait_for(run / "model.ckpt-10.index", processes)
    processes[1].send_signal(signal.SIGTERM)
    assert codes_of(processes) == [143, 143]
    stopped = [
        line
        for number in range(2)
        for line in (tmp_path / f"{number}.txt").read_text().splitlines()
        if line.startswith("stopped at step")
    ]
    assert len(stopped) == 2
    assert stopped[0] == stopped[1]
    step = stopped[0].split()[3]
    assert (run / f"model.ckpt-{step}.index").exists()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"run", "0.txt", "1.txt"}  # TMPDIR is empty again
