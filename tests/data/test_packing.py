"""Rows of several pairs, against the pairs that went in."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data import packing
from t2t_repro.data.packing import (
    PACKED_FEATURES,
    assign_rows,
    batch_packed,
)
from t2t_repro.data.pipeline import (
    BatchPlan,
    left_out_by_packing,
    training_epoch,
)
from tests.support.corpus import random_pairs, write_shards

PAIRS = random_pairs(300, 24, 50)
PLAN = BatchPlan((24,), (4,), packed_length=32)


def unpacked(batch):
    """Return the pairs of a batch, read back from segments and positions."""
    pairs = []
    for row in range(len(batch["inputs"])):
        for segment in range(1, int(batch["inputs_segmentation"][row].max()) + 1):
            sides = []
            for side in ("inputs", "targets"):
                here = batch[f"{side}_segmentation"][row] == segment
                ids = batch[side][row][here]
                positions = batch[f"{side}_position"][row][here]
                assert positions.tolist() == list(range(len(ids)))
                assert np.ptp(np.flatnonzero(here)) == len(ids) - 1
                sides.append(tuple(ids.tolist()))
            pairs.append(tuple(sides))
    return pairs


def epoch(shards, **options):
    options = {"plan": PLAN, "seed": 1, "epoch": 0} | options
    found = training_epoch(shards, **options)
    return [{name: x.numpy() for name, x in batch.items()} for batch in found]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("packed"), PAIRS, 3)


def test_every_pair_is_once_in_an_epoch(shards, monkeypatch):
    monkeypatch.setattr(packing, "PACKING_WINDOW", 70)
    batches = epoch(shards)
    found = Counter(pair for batch in batches for pair in unpacked(batch))
    assert found == Counter((tuple(s), tuple(t)) for s, t in PAIRS)
    assert {x.shape for batch in batches for x in batch.values()} == {(4, 32)}
    assert {frozenset(batch) for batch in batches} == {frozenset(PACKED_FEATURES)}
    for batch, side in itertools.product(batches, ("inputs", "targets")):
        empty = batch[f"{side}_segmentation"] == 0
        assert not batch[side][empty].any()
        assert not batch[f"{side}_position"][empty].any()
        assert batch[side][~empty].all()


def test_a_pair_that_is_too_long_is_left_out(shards):
    plan = BatchPlan((9,), (4,), packed_length=32)
    found = [pair for batch in epoch(shards, plan=plan) for pair in unpacked(batch)]
    expected = [(tuple(s), tuple(t)) for s, t in PAIRS if max(len(s), len(t)) <= 9]
    assert Counter(found) == Counter(expected)
    assert 0 < len(expected) < len(PAIRS)


# Sources are half as long as targets, as the words of a tree are.
SHORT_SOURCES = [
    (source[: max(1, len(target) // 2)], target) for source, target in PAIRS
]
NARROW = BatchPlan((24,), (4,), packed_length=32, packed_source_length=11)


@pytest.fixture(scope="module")
def short_sources(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("narrow"), SHORT_SOURCES, 3)


def test_the_source_side_of_a_row_can_be_shorter(short_sources):
    batches = epoch(short_sources, plan=NARROW)
    shapes = {(name.split("_")[0], x.shape) for b in batches for name, x in b.items()}
    assert shapes == {("inputs", (4, 11)), ("targets", (4, 32))}
    found = Counter(pair for batch in batches for pair in unpacked(batch))
    fitting = [(tuple(s), tuple(t)) for s, t in SHORT_SOURCES if len(s) <= 11]
    assert found == Counter(fitting)


def test_sources_that_fit_no_row_are_found(short_sources):
    long = sum(len(source) > 11 for source, _ in SHORT_SOURCES)
    assert long > 0
    assert len(list(left_out_by_packing(short_sources, NARROW))) == long


def test_sources_of_pairs_that_are_too_long_anyway_do_not_count(short_sources):
    plan = dataclasses.replace(NARROW, boundaries=(15,))
    found = list(left_out_by_packing(short_sources, plan))
    longest = Counter(len(target) > 15 for s, target in SHORT_SOURCES if len(s) > 11)
    assert longest[True] > 0
    assert len(found) == longest[False]


@pytest.mark.parametrize(
    ("packed_lengths", "pairs", "rows"),
    [
        # Room left and difference of the sides: 4 + 2 * 4 in row 0, 10 + 0 in row 1.
        ((20, 20), [(14, 18), (13, 13), (2, 2)], [0, 1, 1]),
        # 3 + 2 * 3 in row 0.
        ((20, 20), [(15, 18), (13, 13), (2, 2)], [0, 1, 0]),
        # A tie of 12 and 12 is row 0's.
        ((20, 20), [(14, 18), (12, 12), (2, 2)], [0, 1, 0]),
        # A source's token counts twice: 6 + 2 + 2 * 4 in row 0, 4 + 5 + 2 in row 1.
        ((10, 20), [(6, 16), (7, 13), (1, 2)], [0, 1, 1]),
    ],
)
def test_a_pair_goes_where_room_and_twice_the_imbalance_are_least(
    packed_lengths, pairs, rows
):
    assert assign_rows(np.array(pairs), packed_lengths).tolist() == rows


def test_two_windows_of_equal_pairs_have_different_orders_of_rows(monkeypatch):
    """The number of a window is part of its seed."""
    monkeypatch.setattr(packing, "PACKING_WINDOW", 40)
    lengths = [*range(2, 22), *range(2, 22)]
    ids = tf.ragged.constant([[7] * n for n in lengths * 2], dtype=tf.int32)
    examples = tf.data.Dataset.from_tensor_slices({"inputs": ids, "targets": ids})
    packed = batch_packed(examples, (21, 21), 1, (1,))
    rows = [batch["inputs_position"].numpy()[0].tolist() for batch in packed]
    first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    assert sorted(first) == sorted(second)
    assert first != second


def test_batches_are_a_function_of_seed_and_epoch(shards):
    def ids(**options):
        return np.concatenate([batch["inputs"] for batch in epoch(shards, **options)])

    first = ids()
    assert np.array_equal(first, ids())
    assert not np.array_equal(first, ids(seed=2)[: len(first)])
    assert not np.array_equal(first[:20], ids(epoch=1)[:20])


def test_hardly_any_position_is_padding():
    # Lengths like those of captions: 15 tokens on average, sides alike.
    generator = np.random.default_rng(0)
    sources = generator.gamma(9.0, 15 / 9, 2048).astype(int) + 1
    targets = np.maximum(1, sources + generator.normal(0, 2.5, 2048)).astype(int)
    lengths = np.stack([sources, targets], axis=1)
    rows = assign_rows(lengths, (128, 128)).max() + 1
    assert lengths.sum() / (rows * 2 * 128) > 0.95
