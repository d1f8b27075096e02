from __future__ import annotations

import pytest

from t2t_repro.data.batch_plan import UpdateSize


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
    size = UpdateSize.plan(update_tokens=25_000, batch_size=3125, replicas=replicas)
    assert str(size) == expected
    assert size.parts == 8


def test_a_step_never_exceeds_the_batch_size():
    size = UpdateSize.plan(update_tokens=25_000, batch_size=3124, replicas=8)
    assert size == UpdateSize(replicas=8, tokens=1562, micro_batches=2)


def test_a_larger_batch_size_than_needed_does_not_enlarge_the_update():
    size = UpdateSize.plan(update_tokens=25_000, batch_size=4096, replicas=8)
    assert size == UpdateSize(replicas=8, tokens=3125, micro_batches=1)


def test_without_update_tokens_every_replica_has_one_step_of_the_batch_size():
    size = UpdateSize.plan(update_tokens=0, batch_size=4096, replicas=8)
    assert size == UpdateSize(replicas=8, tokens=4096, micro_batches=1)
