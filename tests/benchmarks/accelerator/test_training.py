"""A training run that continues on JAX, without TensorFlow, and comes back."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from benchmarks.accelerator.arrays import assign_arrays, read_state
from benchmarks.accelerator.export_batches import export_run
from benchmarks.accelerator.import_weights import import_weights
from t2t_repro.data.prepared import PreparedData
from t2t_repro.errors import UserError
from t2t_repro.runs import System, TrainSettings, train
from t2t_repro.training.checkpoint_paths import find_checkpoint
from tests.support.without_tensorflow import run_without_tensorflow

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed: pip install jax", allow_module_level=True)

TRAIN = "benchmarks.accelerator.train_arrays"
BEFORE, STEPS = 3, 4
# One pass is shorter than the test: the batches cross into the next one.
HPARAMS = (
    "hidden_size=16,filter_size=24,num_heads=2,num_hidden_layers=1,batch_size=1400,"
    "max_length=24,min_length_bucket=24,learning_rate_constant=0.5,"
    "learning_rate_warmup_steps=5,clip_grad_norm=0.8"
)
RATES = "layer_prepostprocess_dropout={0},attention_dropout={0},relu_dropout={0}"

# Five training runs, three of them in processes of their own.
pytestmark = pytest.mark.slow


def train_uninterrupted(output_dir: Path, data: PreparedData, dropout: float) -> None:
    """Train 7 steps, with a checkpoint at step 3."""
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
    """Copy a run with the checkpoint of one step alone."""
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("averaged"))
    for path in folder.glob("model.ckpt-*"):
        if not path.name.startswith(f"model.ckpt-{step}."):
            path.unlink()
    assert find_checkpoint(folder) == str(folder / f"model.ckpt-{step}")
    return folder


@dataclasses.dataclass
class Trip:
    """A run after 3 steps, its export, 4 steps on JAX, and the same steps here."""

    run: Path
    arrays: Path
    on_jax: Path
    uninterrupted: Path
    printed: str


def make_trip(folder: Path, data: PreparedData, dropout: float) -> Trip:
    train_uninterrupted(folder / "uninterrupted", data, dropout)
    run = as_it_was(BEFORE, folder / "uninterrupted", folder / "run")
    export_run(run, STEPS, folder / "arrays", bytes_per_file=30_000)
    flags = ("--dtype", "float32", "--keep_optimizer", "--report_every", 2)
    ended = run_without_tensorflow(
        TRAIN, "--arrays", folder / "arrays", "--to", folder / "on_jax", *flags
    )
    assert ended.returncode == 0, ended.stderr
    folders = (folder / name for name in ("run", "arrays", "on_jax", "uninterrupted"))
    return Trip(*folders, ended.stdout)


@pytest.fixture(scope="module")
def trip(data, tmp_path_factory) -> Trip:
    return make_trip(tmp_path_factory.mktemp("trip"), data, 0.0)


@pytest.fixture(scope="module")
def trip_with_dropout(data, tmp_path_factory) -> Trip:
    return make_trip(tmp_path_factory.mktemp("dropout"), data, 0.2)


def values_of(output_dir: Path) -> dict[str, np.ndarray]:
    """Return every value of the latest checkpoint."""
    reader = tf.train.load_checkpoint(find_checkpoint(output_dir))
    names = [n for n in reader.get_variable_to_shape_map() if "ATTRIBUTES" in n]
    return {name: reader.get_tensor(name) for name in names}


def check_same_run(trip: Trip, imported: Path, parts: set[str]) -> None:
    """Compare the whole state of the imported run with the uninterrupted one."""
    import_weights(trip.run, trip.on_jax, imported)
    found, expected = values_of(imported), values_of(trip.uninterrupted)
    # The steps since the last line of metrics; JAX writes its own lines.
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


def test_steps_on_jax_equal_those_of_t2t_train(trip, tmp_path):
    check_same_run(trip, tmp_path / "imported", {"model", "optimizer", "data"})


def test_steps_with_our_dropout_on_jax_equal_those_of_t2t_train(
    trip_with_dropout, tmp_path
):
    parts = {"model", "optimizer", "data", "random"}
    check_same_run(trip_with_dropout, tmp_path / "imported", parts)


def test_the_batches_cross_into_the_next_pass(trip):
    description = json.loads((trip.on_jax / "description.json").read_text())
    assert description["step"] == BEFORE + STEPS
    assert description["epoch"] > 0


def test_the_loss_is_printed_every_few_steps(trip):
    steps = [line.split()[1] for line in trip.printed.splitlines() if "loss" in line]
    assert steps == ["5", "7"]


def test_an_imported_run_translates_like_the_uninterrupted_one(trip, tmp_path):
    import_weights(trip.run, trip.on_jax, tmp_path / "imported")
    outputs = [
        System.load(folder).translate(["one times: the house is red ."])
        for folder in (tmp_path / "imported", trip.uninterrupted)
    ]
    assert outputs[0] == outputs[1]


def test_files_of_the_state_have_a_limited_size(trip):
    sizes = [path.stat().st_size for path in trip.arrays.glob("state-*.npz")]
    assert len(sizes) > 3
    # One array may be larger: the embedding with its 350 rows of 16 floats is not.
    assert max(sizes) < 60_000


VARIABLE = "model/table"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "model/table is missing"),
        ({VARIABLE: np.ones((2, 3)), "model/other": np.ones(3)}, "other is unknown"),
        ({VARIABLE: np.ones((3, 2))}, r"has the shape \(3, 2\), expected \(2, 3\)"),
        ({VARIABLE: np.full((2, 3), np.nan)}, "model/table is not finite"),
    ],
)
def test_arrays_of_another_model_are_refused(arrays, message):
    variable = keras.Variable(np.zeros((2, 3)))
    with pytest.raises(UserError, match=message):
        assign_arrays({VARIABLE: variable}, arrays)
    assert not np.any(variable.numpy())


def test_arrays_of_another_training_are_refused(trip, tmp_path):
    shutil.copytree(trip.on_jax, tmp_path / "changed")
    path = tmp_path / "changed" / "description.json"
    description = json.loads(path.read_text())
    description["hparams"]["num_heads"] = 4
    description |= {"problem": "other", "data_digest": "0"}
    path.write_text(json.dumps(description))
    with pytest.raises(UserError) as refused:
        import_weights(trip.run, tmp_path / "changed", tmp_path / "imported")
    for text in ("num_heads is 4 there, 2 now", "'other' there", "'0' there"):
        assert text in str(refused.value)
    assert not (tmp_path / "imported").exists()


def test_an_existing_folder_is_not_overwritten(trip, tmp_path):
    with pytest.raises(UserError, match="exists"):
        import_weights(trip.run, trip.on_jax, tmp_path)


def test_damaged_arrays_are_a_user_error(trip, tmp_path):
    path = sorted(trip.on_jax.glob("state-*.npz"))[0]
    (tmp_path / path.name).write_bytes(path.read_bytes()[:200])
    with pytest.raises(UserError, match=r"state-00000\.npz is damaged"):
        read_state(tmp_path)


def test_a_training_from_the_start_comes_back_as_weights_alone(
    trip_with_dropout, tmp_path
):
    run = trip_with_dropout.run
    export_run(run, 2, tmp_path / "arrays", from_start=True)
    assert not list((tmp_path / "arrays").glob("state-*"))
    flags = ("--dtype", "bfloat16", "--steps", 5)
    ended = run_without_tensorflow(
        TRAIN, "--arrays", tmp_path / "arrays", "--to", tmp_path / "on_jax", *flags
    )
    assert ended.returncode == 0, ended.stderr
    path = import_weights(run, tmp_path / "on_jax", tmp_path / "imported")
    assert Path(path).name == "model.ckpt-5"
    assert {n.partition("/")[0] for n in values_of(tmp_path / "imported")} == {"model"}
    assert System.load(tmp_path / "imported").translate(["one times:"])
