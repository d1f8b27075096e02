"""Tests of `map_in_threads`."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from t2t_repro.decoding.translator import map_in_threads


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(num_threads: int) -> None:
    delays = [0.03, 0.0, 0.02, 0.0, 0.01, 0.0]

    def work(number: int) -> int:
        time.sleep(delays[number])
        return 10 * number

    found = list(map_in_threads(work, range(6), num_threads))

    assert found == [0, 10, 20, 30, 40, 50]


def test_two_threads_work_on_two_items_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=10)

    found = list(map_in_threads(lambda item: both.wait() in (0, 1), range(4), 2))

    assert found == [True] * 4


@pytest.mark.parametrize("num_threads", [1, 3])
def test_an_exception_comes_in_place_of_its_result(num_threads: int) -> None:
    def work(number: int) -> int:
        if number == 2:
            raise ValueError("two")
        return number

    results = map_in_threads(work, range(100), num_threads)

    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(results)


def test_no_other_item_begins_after_an_exception() -> None:
    begun = []

    def work(number: int) -> None:
        begun.append(number)
        time.sleep(0.01)
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        list(map_in_threads(work, range(100), 2))

    count = len(begun)
    time.sleep(0.05)
    assert len(begun) == count <= 6


def test_a_caller_that_stops_ends_the_threads() -> None:
    before = threading.active_count()
    results = map_in_threads(lambda item: item, range(1000), 4)
    next(results)

    results.close()

    assert threading.active_count() == before


def test_an_endless_input_is_read_as_results_are_taken() -> None:
    taken = []

    def items() -> itertools.count:
        for number in itertools.count():
            taken.append(number)
            yield number

    results = map_in_threads(lambda item: item, items(), 2)

    assert list(itertools.islice(results, 10)) == list(range(10))
    assert len(taken) <= 10 + 2 * 2 + 1
