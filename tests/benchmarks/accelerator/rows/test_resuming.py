"""A training run that continues on JAX, without TensorFlow, and comes back."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.accelerator.rows import export, runs
from benchmarks.accelerator.rows.job import load_jobs, load_outcomes
from t2t_repro.data.prepared import PreparedData
from t2t_repro.runs import TrainSettings, train
from t2t_repro.training.checkpoint_paths import find_checkpoint
from tests.support.accelerator_jobs import call
from tests.support.without_tensorflow import run_without_tensorflow

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed: pip install jax", allow_module_level=True)

BEFORE, STEPS = 3, 4
# One pass is shorter than the test: the batches cross into the next one.
HPARAMS = (
    "hidden_size=16,filter_size=24,num_heads=2,num_hidden_layers=1,batch_size=1400,"
    "max_length=24,min_length_bucket=24,learning_rate_constant=0.5,"
    "learning_rate_warmup_steps=5,clip_grad_norm=0.8"
)
RATES = "layer_prepostprocess_dropout={0},attention_dropout={0},relu_dropout={0}"

# Four training runs, two of them in processes of their own.
pytestmark = pytest.mark.slow


def train_uninterrupted(output_dir: Path, data: PreparedData, dropout: float) -> None:
    settings = TrainSettings(
        output_dir=str(output_dir),
        hparams_set="transformer_tiny",
        hparams=f"{HPARAMS},{RATES.format(dropout)}"
        + (",rdrop_weight=3" if dropout else ""),
        random_seed=7,
        train_steps=BEFORE + STEPS,
        save_checkpoints_steps=BEFORE,
        eval_sentences=0,
        attention_samples=0,
        average_last=1,
        xla="off",
    )
    train(settings, data)


def as_it_was(step: int, run: Path, folder: Path) -> Path:
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("averaged"))
    for path in folder.glob("model.ckpt-*"):
        if not path.name.startswith(f"model.ckpt-{step}."):
            path.unlink()
    assert find_checkpoint(folder) == str(folder / f"model.ckpt-{step}")
    return folder


@dataclasses.dataclass
class Trip:
    """A run after 3 steps, 4 more steps on JAX, and the same steps here."""

    run: Path
    jobs: Path
    on_jax: Path
    uninterrupted: Path


def make_trip(folder: Path, data: PreparedData, dropout: float) -> Trip:
    train_uninterrupted(folder / "uninterrupted", data, dropout)
    run = as_it_was(BEFORE, folder / "uninterrupted", folder / "run")
    jobs, outcomes = folder / "jobs", folder / "outcomes"
    assert call(export, ["--to", str(jobs), "--resume", str(run)]) == 0
    ended = run_without_tensorflow(
        "benchmarks.accelerator.rows.train", "--jobs", jobs, "--to", outcomes
    )
    assert ended.returncode == 0, ended.stderr
    ((job, outcome),) = load_outcomes(jobs, outcomes)
    runs.write_system(job, outcome, data, folder / "on_jax")
    return Trip(run, jobs, folder / "on_jax", folder / "uninterrupted")


@pytest.fixture(scope="module")
def trip(data, tmp_path_factory) -> Trip:
    return make_trip(tmp_path_factory.mktemp("trip"), data, 0.0)


@pytest.fixture(scope="module")
def trip_with_dropout(data, tmp_path_factory) -> Trip:
    return make_trip(tmp_path_factory.mktemp("dropout"), data, 0.2)


def values_of(output_dir: Path) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(find_checkpoint(output_dir))
    names = [n for n in reader.get_variable_to_shape_map() if "ATTRIBUTES" in n]
    return {name: reader.get_tensor(name) for name in names}


def check_same_run(trip: Trip, parts: set[str]) -> None:
    found, expected = values_of(trip.on_jax), values_of(trip.uninterrupted)
    # The steps since the last line of metrics; JAX writes no such lines.
    expected = {
        name: value
        for name, value in expected.items()
        if not name.startswith("metrics/")
    }
    before = values_of(trip.run)
    assert {name.partition("/")[0] for name in expected} == parts
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)
    moved = [not np.allclose(v, before[n], atol=1e-4) for n, v in expected.items()]
    assert sum(moved) > len(moved) / 2


def test_steps_on_jax_equal_those_of_t2t_train(trip):
    check_same_run(trip, {"model", "optimizer", "data"})
    (job,) = load_jobs(trip.jobs)
    assert (job.first_step, job.last_step) == (BEFORE, BEFORE + STEPS)
    assert job.position[0] > 0  # The batches cross into the next pass.


def test_steps_with_our_dropout_on_jax_equal_those_of_t2t_train(trip_with_dropout):
    check_same_run(trip_with_dropout, {"model", "optimizer", "data", "random"})


def test_t2t_train_resumes_a_run_from_jax(trip, data, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trip.on_jax, folder)
    description = json.loads((folder / "hparams.json").read_text(encoding="utf-8"))
    assert description["random_seed"] == 7
    settings = TrainSettings(
        output_dir=str(folder),
        hparams_set="transformer_tiny",
        hparams=f"{HPARAMS},{RATES.format(0.0)}",
        random_seed=7,
        train_steps=BEFORE + STEPS + 1,
        eval_sentences=0,
        attention_samples=0,
        average_last=0,
        xla="off",
    )
    assert train(settings, data).steps == BEFORE + STEPS + 1
