from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.errors import UserError
from t2t_repro.training.checkpoint_paths import all_checkpoints, find_checkpoint
from t2t_repro.training.checkpoints import average_checkpoints, model_variables, restore
from tests.support.tiny_training import (
    checkpoints_of,
    one_value,
    tiny_model,
    weights_of,
)


def test_the_average_of_equal_checkpoints_has_exactly_their_weights(tmp_path):
    model = tiny_model()
    expected = weights_of(model)
    checkpoints = checkpoints_of(model, tmp_path)
    paths = [checkpoints.save(step) for step in (1, 2, 3)]
    average_checkpoints(model, tmp_path, paths)
    for path, weights in weights_of(model).items():
        np.testing.assert_array_equal(weights, expected[path])


def test_the_average_is_the_mean_has_the_last_step_and_replaces_the_earlier_one(
    own_run, model
):
    paths = all_checkpoints(own_run)
    average_checkpoints(model, own_run, paths[1:2])
    assert one_value(model) == 2.0
    path = average_checkpoints(model, own_run, paths)
    assert one_value(model) == 3.0
    assert path == str(own_run / "averaged" / "model.ckpt-300")
    assert all_checkpoints(own_run / "averaged") == [path]
    assert not (own_run / "averaged.incomplete").exists()


def test_averaging_a_damaged_checkpoint_leaves_the_old_average(own_run, model):
    paths = all_checkpoints(own_run)
    average_checkpoints(model, own_run, paths)
    (own_run / "model.ckpt-200.data-00000-of-00001").write_bytes(b"")
    with pytest.raises(UserError):
        average_checkpoints(model, own_run, paths)
    restore(model_variables(model), find_checkpoint(own_run, "averaged"))
    assert one_value(model) == 3.0
