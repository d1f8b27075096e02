from __future__ import annotations

import os
import sys

import pytest

from t2t_repro.data.encoding import ordered_map
from t2t_repro.errors import UserError


def square(number: int) -> tuple[int, int, bool]:
    return number * number, os.getpid(), "tensorflow" in sys.modules


@pytest.mark.parametrize("count", [0, 1, 10])
def test_few_items_stay_in_this_process(count):
    found = [*ordered_map(square, range(count), 2)]
    assert [result for result, *_ in found] == [n * n for n in range(count)]
    assert {pid for _, pid, _ in found} <= {os.getpid()}


def test_many_items_keep_their_order_and_workers_do_not_import_tensorflow():
    import tensorflow  # noqa: F401  # here, and not in the workers

    found = [*ordered_map(square, range(60), 2)]
    assert [result for result, *_ in found] == [n * n for n in range(60)]
    workers = [(pid, loaded) for _, pid, loaded in found if pid != os.getpid()]
    assert len(workers) == 50
    assert not any(loaded for _, loaded in workers)


def test_items_are_not_read_far_ahead():
    read = []

    def items():
        for number in range(1_000):
            read.append(number)
            yield number

    results = ordered_map(square, items(), 2)
    for _ in range(20):
        next(results)
    assert len(read) < 40
    results.close()


def end(number: int) -> int:
    if number == 30:
        os._exit(3)
    return number


def test_a_worker_that_ends_is_reported():
    with pytest.raises(UserError, match="one of 2 worker processes ended"):
        list(ordered_map(end, range(60), 2))


def broken(number: int) -> int:
    raise ValueError(f"item {number}")


@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_error_of_the_function_is_raised(num_workers):
    with pytest.raises(ValueError, match="item 0"):
        list(ordered_map(broken, range(60), num_workers))
