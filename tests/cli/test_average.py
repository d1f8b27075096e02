from __future__ import annotations

import shutil

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.cli.main import main
from t2t_repro.files import folder_lock
from t2t_repro.runs.run_checkpoints import AVERAGING_LOCK
from tests.support.trained_system import printed_by, weights_at


@pytest.fixture
def without_average(own_run):
    shutil.rmtree(own_run / "averaged")
    return own_run


def average(folder, last):
    return printed_by(["average", "--output_dir", str(folder), "--last", str(last)])


@pytest.mark.parametrize(
    ("last", "steps"), [(1, [60]), (2, [40, 60]), (3, [20, 40, 60])]
)
def test_the_average_is_the_mean_of_the_last_checkpoints(without_average, last, steps):
    own_run = without_average
    printed = average(own_run, last)
    assert printed == f"{own_run / 'averaged' / 'model.ckpt-60'}\n"
    averaged = weights_at(printed.strip())
    kept = [weights_at(own_run / f"model.ckpt-{step}") for step in steps]
    for name, values in averaged.items():
        mean = np.mean([weights[name] for weights in kept], axis=0, dtype=np.float64)
        np.testing.assert_array_equal(values, mean.astype(np.float32))


def test_nothing_is_averaged_while_another_process_averages(own_run, capsys):
    with folder_lock(own_run, AVERAGING_LOCK, "averaging"):
        assert main(["average", "--output_dir", str(own_run), "--last", "1"]) == 1
    assert "is averaging in" in capsys.readouterr().err


def test_training_averages_as_the_command_does(trained, without_average):
    own = weights_at(average(without_average, 2).strip())
    for name, values in weights_at(
        trained.output_dir / "averaged" / "model.ckpt-60"
    ).items():
        np.testing.assert_array_equal(values, own[name])


def test_the_average_holds_no_state_of_the_optimizer(trained):
    path = trained.output_dir / "averaged" / "model.ckpt-60"
    names = tf.train.load_checkpoint(str(path)).get_variable_to_shape_map()
    assert {name.partition("/")[0] for name in names} <= {
        "model",
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "save_counter",
    }
