"""Tests of the shapes of batches."""

import random

import pytest

from t2t_repro.data.batch_plan import BatchPlan

PLAN = BatchPlan(boundaries=(4, 8, 16), rows=(4, 2, 1))


def test_texts_are_grouped_under_the_first_boundary_that_holds_them():
    assert list(PLAN.group([4, 5, 1, 8, 9, 16])) == [
        ([5], 16),
        ([4], 16),
        ([3, 1], 8),
        ([0, 2], 4),
    ]


@pytest.mark.parametrize("count", [1, 7, 100])
def test_every_text_is_in_one_batch_that_has_room_for_it(count):
    lengths = random.Random(count).choices(range(1, 17), k=count)
    batches = list(PLAN.group(lengths))
    assert sorted(n for indices, _ in batches for n in indices) == list(range(count))
    for indices, length in batches:
        assert len(indices) <= PLAN.rows[PLAN.boundaries.index(length)]
        assert max(lengths[n] for n in indices) <= length


def test_the_longest_texts_come_first():
    lengths = random.Random(1).choices(range(1, 17), k=50)
    order = [lengths[n] for indices, _ in PLAN.group(lengths) for n in indices]
    assert order == sorted(lengths, reverse=True)


@pytest.mark.parametrize(("batch_size", "rows"), [(20, 4), (32, 4), (90, 8)])
def test_each_of_four_replicas_has_the_rows_of_its_tokens_and_at_least_one(
    batch_size, rows
):
    packed = BatchPlan.packed(
        batch_size=batch_size, max_length=24, packed_length=32, num_replicas=4
    )
    bucketed = BatchPlan.from_token_budget(
        batch_size=batch_size,
        max_length=32,
        min_length_bucket=32,
        length_bucket_step=1.1,
        num_replicas=4,
    )
    assert (packed.rows, bucketed.rows) == ((rows,), (rows,))
