"""Tests of the shapes of batches and the size of updates."""

import random

import pytest

from t2t_repro import catalogue
from t2t_repro.data.batch_plan import BatchPlan, UpdateSize, batches_by_length

TINY = catalogue.hparams("transformer_tiny")


def test_texts_of_any_lengths_fill_a_batch_longest_first():
    assert list(batches_by_length([4, 5, 1, 8, 9, 21], 18)) == [[5], [4, 3], [1, 0, 2]]


@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_every_text_is_in_one_batch_that_has_room_for_it(count):
    lengths = random.Random(count).choices(range(1, 17), k=count)
    batches = list(batches_by_length(lengths, 40))
    assert sorted(n for indices in batches for n in indices) == list(range(count))
    for indices in batches:
        assert len(indices) * max(lengths[n] for n in indices) <= 40


@pytest.mark.parametrize(("batch_size", "rows"), [(20, 4), (32, 4), (90, 8)])
def test_each_of_four_replicas_has_the_rows_of_its_tokens_and_at_least_one(
    batch_size, rows
):
    packing = TINY.replace(batch_size=batch_size, max_length=24, packed_length=32)
    buckets = TINY.replace(batch_size=batch_size, max_length=32, min_length_bucket=32)
    plans = (BatchPlan.for_training(hparams, 4) for hparams in (packing, buckets))
    assert [plan.rows for plan in plans] == [(rows,), (rows,)]


def test_a_plan_of_packed_rows_has_the_lengths_of_the_hparams():
    hparams = TINY.replace(
        batch_size=130, max_length=24, packed_length=32, packed_source_length=11
    )
    assert BatchPlan.for_training(hparams) == BatchPlan((24,), (4,), 32, 11)


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        (1, "1 replica x 3,125 tokens x 8 micro-batches"),
        (2, "2 replicas x 3,125 tokens x 4 micro-batches"),
        (4, "4 replicas x 3,125 tokens x 2 micro-batches"),
        (8, "8 replicas x 3,125 tokens x 1 micro-batch"),
    ],
)
def test_an_update_has_25_000_tokens_on_any_number_of_replicas(replicas, expected):
    size = UpdateSize.of(TINY.replace(update_tokens=25_000, batch_size=3125), replicas)
    assert str(size) == expected
    assert size.parts == 8


@pytest.mark.parametrize(
    ("update_tokens", "batch_size", "tokens", "micro_batches"),
    [
        # A step never exceeds the batch size, and a larger one does not enlarge it.
        (25_000, 3124, 1562, 2),
        (25_000, 4096, 3125, 1),
        # Without `update_tokens`, every replica has one step of the batch size.
        (0, 4096, 4096, 1),
    ],
)
def test_eight_replicas_share_an_update_evenly(
    update_tokens, batch_size, tokens, micro_batches
):
    hparams = TINY.replace(update_tokens=update_tokens, batch_size=batch_size)
    size = UpdateSize.of(hparams, 8)
    assert size == UpdateSize(8, tokens, micro_batches)
