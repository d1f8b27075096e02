from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import catalogue
from t2t_repro.data import pipeline
from t2t_repro.data.batch_plan import bucket_boundaries
from t2t_repro.data.pipeline import (
    BatchPlan,
    Shards,
    evaluation_batches,
    training_epoch,
)
from tests.support.corpus import random_pairs, rows_of, write_shards

LONGEST = 24
PAIRS = random_pairs(300, LONGEST, 50)
TINY = catalogue.hparams("transformer_tiny")
PLAN = BatchPlan.for_evaluation(
    TINY.replace(
        batch_size=60, max_length=LONGEST, min_length_bucket=4, length_bucket_step=1.5
    )
)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("shards"), PAIRS, 3)


def epoch_of(shards, **options):
    options = {"plan": PLAN, "seed": 1, "epoch": 0} | options
    return [rows_of(batch) for batch in training_epoch(shards, **options)]


@pytest.fixture(scope="module")
def epoch(shards):
    return epoch_of(shards)


def as_counter(rows):
    return Counter((tuple(source), tuple(target)) for source, target in rows)


def test_boundaries_are_tensor2tensors_and_the_longest_length():
    # tensor2tensor data_reader.py: `_bucket_boundaries(256, 8, 1.1)`, its last bucket
    small = range(8, 21)
    large = [22, 24, 26, 28, 30, 33, 36, 39, 42, 46, 50, 55, 60, 66, 72, 79, 86, 94]
    large += [103, 113, 124, 136, 149, 163, 179, 196, 215, 236, 256]
    assert bucket_boundaries(256, 8, 1.1) == (*small, *large)


@pytest.mark.parametrize("replicas", [1, 2, 8])
def test_rows_fill_the_token_budget_of_every_replica(replicas):
    hparams = TINY.replace(
        batch_size=100, max_length=64, min_length_bucket=8, length_bucket_step=2.0
    )
    plan = BatchPlan.for_evaluation(hparams, replicas)
    assert plan.boundaries == (8, 16, 32, 64)
    assert plan.rows == tuple(n * replicas for n in (12, 6, 3, 1))


def test_a_pair_goes_to_the_first_boundary_that_holds_it(shards):
    for batch in training_epoch(shards, PLAN, seed=1, epoch=0):
        (rows, boundary) = batch["inputs"].shape
        place = PLAN.boundaries.index(boundary)
        assert rows == PLAN.rows[place]
        assert batch["targets"].shape == batch["inputs"].shape
        shorter = PLAN.boundaries[place - 1] if place else 0
        longer_sides = [max(map(len, pair)) for pair in rows_of(batch)]
        assert all(shorter < length <= boundary for length in longer_sides)


def test_every_pair_comes_once_per_epoch(epoch):
    rows = [row for batch in epoch for row in batch]
    assert as_counter(rows) == as_counter(PAIRS)


def test_only_pairs_that_are_too_long_are_left_out(shards):
    plan = BatchPlan((6, 12), (8, 4))
    rows = [row for batch in epoch_of(shards, plan=plan) for row in batch]
    short = [pair for pair in PAIRS if max(map(len, pair)) <= 12]
    assert as_counter(rows) == as_counter(short)


def test_the_order_is_a_function_of_seed_and_epoch(shards):
    batches = training_epoch(shards, PLAN, seed=3, epoch=2)
    expected = [rows_of(batch) for batch in batches]
    assert [rows_of(batch) for batch in batches] == expected
    assert epoch_of(shards, seed=3, epoch=2) == expected


@pytest.mark.parametrize("other", [{"seed": 2}, {"epoch": 1}])
def test_another_seed_or_epoch_shuffles_the_pairs_of_one_shard_differently(
    shards, other
):
    # A single shard has no order of shards: the shuffling of its pairs must differ.
    one = Shards(shards.paths[:1])
    rows = [row for batch in epoch_of(one, **other) for row in batch]
    assert as_counter(rows) == as_counter(PAIRS[::3])
    assert epoch_of(one, **other) != epoch_of(one)


@pytest.mark.parametrize("other", [{"seed": 2}, {"epoch": 1}])
def test_another_seed_or_epoch_reads_the_shards_in_another_order(
    tmp_path, monkeypatch, other
):
    # A buffer of one pair shuffles nothing, so only the order of the shards differs.
    monkeypatch.setattr(pipeline, "SHUFFLE_BUFFER", 1)
    pairs = [([5 + number, 1], [6, 1]) for number in range(12)]
    shards = write_shards(tmp_path, pairs, 12)
    plan = BatchPlan((2,), (1,))
    orders = [
        [source[0] - 5 for batch in epoch for source, _ in batch]
        for epoch in (
            epoch_of(shards, plan=plan),
            epoch_of(shards, plan=plan, **other),
        )
    ]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(12))
    assert orders[0] != orders[1]


@pytest.mark.parametrize("done", [1, 7])
def test_the_batches_after_the_skipped_ones_follow(shards, epoch, done):
    assert epoch_of(shards, skip_batches=done) == epoch[done:]


def test_the_parts_of_the_replicas_make_up_the_global_batch(shards):
    replicas = 4
    plan = BatchPlan(PLAN.boundaries, tuple(replicas * rows for rows in PLAN.rows))
    wholes = list(training_epoch(shards, plan, seed=1, epoch=0))
    parts = list(training_epoch(shards, plan, seed=1, epoch=0, num_replicas=replicas))
    assert len(parts) == replicas * len(wholes)
    for number, whole in enumerate(wholes):
        own = parts[replicas * number : replicas * (number + 1)]
        assert len({tuple(part["inputs"].shape) for part in own}) == 1
        for side, ids in whole.items():
            np.testing.assert_array_equal(tf.concat([p[side] for p in own], 0), ids)


def test_a_bucket_that_is_not_full_is_filled_with_rows_of_padding(tmp_path):
    shards = write_shards(tmp_path, [([5, 1], [6, 7, 1])])
    (batch,) = training_epoch(shards, BatchPlan((4,), (3,)), seed=1, epoch=0)
    assert batch["inputs"].numpy().tolist() == [[5, 1, 0, 0], [0] * 4, [0] * 4]
    assert batch["targets"].numpy().tolist() == [[6, 7, 1, 0], [0] * 4, [0] * 4]


def test_evaluation_keeps_the_order_of_the_shards(shards):
    plan = BatchPlan((LONGEST,), (50,))
    rows = [row for b in evaluation_batches(shards, plan) for row in rows_of(b)]
    assert rows == [pair for start in range(3) for pair in PAIRS[start::3]]
