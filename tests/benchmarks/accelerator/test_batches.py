"""Which batch an update on JAX reads."""

from __future__ import annotations

import dataclasses
import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed: pip install jax", allow_module_level=True)

from benchmarks.accelerator.arrays import Batches, Description
from benchmarks.accelerator.train_arrays import Training, batch_number, remaining
from t2t_repro import catalogue
from t2t_repro.errors import UserError

COUNT = 5
IDS = [np.full((2, 3), number, np.int32) for number in range(COUNT)]
BATCHES = Batches(IDS, [10 + ids for ids in IDS], np.arange(2 * COUNT).reshape(-1, 2))
EXPORTED = Description(
    problem="text_pairs",
    data_digest="digest",
    hparams=catalogue.hparams("transformer_tiny"),
    source_vocab_size=20,
    target_vocab_size=20,
    random_seed=3,
    step=40,
    epoch=0,
    batches=0,
)


def test_the_first_pass_keeps_the_order_and_later_ones_have_their_own():
    numbers = [batch_number(step, COUNT, seed=1) for step in range(4 * COUNT)]
    passes = [tuple(numbers[i : i + COUNT]) for i in range(0, len(numbers), COUNT)]
    assert passes[0] == (0, 1, 2, 3, 4)
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in passes)
    assert len(set(passes)) == len(passes)


def test_a_continued_training_begins_after_the_batches_that_it_has_seen():
    left = remaining(BATCHES, EXPORTED, dataclasses.replace(EXPORTED, step=43))
    assert [int(ids[0, 0]) for ids in left.inputs] == [3, 4]
    assert [int(ids[0, 0]) for ids in left.targets] == [13, 14]
    assert left.positions.tolist() == [[6, 7], [8, 9]]


@pytest.mark.parametrize("step", [39, 45])
def test_a_state_outside_the_exported_steps_is_refused(step):
    state = dataclasses.replace(EXPORTED, step=step)
    with pytest.raises(UserError, match=f"of step {step}, expected one from 40 to 44"):
        remaining(BATCHES, EXPORTED, state)


def test_weights_without_the_optimizer_cannot_be_trained_further():
    with pytest.raises(UserError, match="the state has weights alone"):
        Training.begin(EXPORTED, {"model/table": np.zeros(2)}, "float32")
