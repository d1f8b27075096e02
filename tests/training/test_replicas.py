"""Several replicas train like one. The fast cases share a process."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.support.corpus import random_pairs, write_shards
from tests.support.guarded_updates import NAN, SPIKE
from tests.support.tiny_model import VOCAB_SIZE
from tests.support.train_on_replicas import CASES, STEPS, train

CHEAP = ("2 weighted", "2 x 4")
SLOW = ("4 x 2", "8")
METRICS = ("loss", "nll", "gradient_norm")
COUNTS = ("source_tokens", "target_tokens", "positions")


class Process:
    """A process that trains some cases while the test trains them on one replica."""

    def __init__(self, folder, names):
        self.folder, self.names = folder, names
        self.shards = write_shards(folder, random_pairs(100, 12, VOCAB_SIZE), 1)
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.support.train_on_replicas"),
                *(str(folder), *self.shards.paths, *names),
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        kinds = {CASES[name].alone() for name in names}
        one = tf.distribute.get_strategy()
        self.alone = {kind: train(one, self.shards, kind) for kind in kinds}
        _, errors = self.process.communicate()
        assert self.process.returncode == 0, errors

    def arrays(self, name):
        return dict(np.load(self.folder / f"{name}.npz"))

    def pair(self, name):
        """Return the results of a case, and those of one replica."""
        return self.arrays(name), self.alone[CASES[name].alone()]


@pytest.fixture(scope="module")
def cheap(tmp_path_factory):
    return Process(tmp_path_factory.mktemp("replicas"), CHEAP)


def assert_same_training(found, alone):
    assert found.keys() == alone.keys()
    assert len(alone["loss"]) == STEPS
    assert any(name.startswith("weights/") for name in alone)
    for name in METRICS:
        # float32 sums in another order; measured: 5e-7 at most
        np.testing.assert_allclose(found[name], alone[name], atol=5e-6, rtol=0)
    for name in COUNTS:
        np.testing.assert_array_equal(found[name], alone[name])
    for name, value in alone.items():
        # measured: 1e-7 at most
        if "/" in name:
            np.testing.assert_allclose(found[name], value, atol=2e-6, rtol=0)


@pytest.mark.parametrize("name", CHEAP)
def test_replicas_and_micro_batches_train_like_one_replica(cheap, name):
    assert_same_training(*cheap.pair(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_more_replicas_train_like_one_replica(tmp_path, name):
    assert_same_training(*Process(tmp_path, [name]).pair(name))


@pytest.mark.parametrize("run", ["masks", "resumed_masks"])
def test_dropout_differs_between_replicas_and_steps(cheap, run):
    masks = cheap.arrays(run)["masks"]
    assert masks.shape == (2, 2, 64)
    assert len(np.unique(masks.reshape(-1, 64), axis=0)) == 4


def values(arrays, name):
    """Return the arrays with a name and a number, in order."""
    found = [arrays[key] for key in sorted(arrays) if key.startswith(f"{name}/")]
    assert found
    return found


def test_the_moving_average_is_that_of_one_replica(cheap):
    found, alone = cheap.pair("2 x 4")
    averages = [name for name in alone if name.startswith("average/")]
    assert len(averages) == 3
    for name in averages:
        weights = alone[name.replace("average/", "weights/")]
        assert (alone[name] != weights).any()
        np.testing.assert_allclose(found[name], alone[name], atol=2e-6, rtol=0)


def test_all_replicas_evaluate_the_average_and_get_their_weights_back(cheap):
    arrays = cheap.arrays("average")
    rows = (values(arrays, n) for n in ("before", "average", "inside", "after"))
    for before, average, inside, after in zip(*rows, strict=True):
        assert len(before) == 2
        assert (before[0] == before[1]).all()
        assert (before != average).any()
        np.testing.assert_array_equal(inside, average)
        np.testing.assert_array_equal(after, before)


def test_the_trial_of_the_largest_batch_changes_no_replica(cheap):
    arrays = cheap.arrays("largest_batch")
    before, after, trained, plain = (
        values(arrays, name) for name in ("0", "1", "2", "plain")
    )
    assert all(map(np.array_equal, after, before))
    assert not all(map(np.array_equal, trained, before))
    assert all(map(np.array_equal, trained, plain))


def test_all_replicas_start_with_the_same_weights_as_one(cheap):
    arrays = cheap.arrays("warm_start")
    for found, expected in zip(
        values(arrays, "all"), values(arrays, "one"), strict=True
    ):
        assert (len(found), len(expected)) == (2, 1)
        assert (found == expected).all()


@pytest.mark.parametrize("fact", ["skipped", "same"])
def test_replicas_skip_a_loss_that_is_not_finite_and_a_spike(cheap, fact):
    """As in test_recovery.py; "same": the update changed no variable."""
    assert [*np.flatnonzero(cheap.arrays("guarded")[fact])] == [*NAN, *SPIKE]
