"""Sentences that come together are translated together, and none waits for long."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from t2t_repro.features.serving.request_batches import Batches, Task
from t2t_repro.features.serving.service_settings import ServiceError, ServiceSettings


class Work:
    """Work that doubles numbers, and waits while its gate is closed."""

    def __init__(self, key: str = "key", *, is_long: bool = False) -> None:
        self.batches: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.seconds = 0.0
        self.task = Task(key, self._run, is_long)

    def _run(self, items: Sequence[int]) -> list[int]:
        self.batches.append([*items])
        assert self.gate.wait(10)
        time.sleep(self.seconds)
        if -1 in items:
            raise ValueError("negative")
        return [2 * item for item in items]


def run(test: Callable[[Batches], Awaitable[Any]], **settings: Any) -> Any:
    async def main() -> Any:
        batches = Batches(ServiceSettings(**{"workers": 1, **settings}))
        try:
            return await asyncio.wait_for(test(batches), 10)
        finally:
            batches.close()

    return asyncio.run(main())


async def started(work: Work, count: int = 1) -> None:
    while len(work.batches) < count:
        await asyncio.sleep(0.001)


def test_each_item_gets_its_own_result():
    work = Work()

    async def test(batches):
        requests = [batches.submit(work.task, [n, n + 100]) for n in range(50)]
        return [await asyncio.gather(*request) for request in requests]

    assert run(test) == [[2 * n, 2 * n + 200] for n in range(50)]


def test_what_waits_while_the_threads_are_busy_is_the_next_batch():
    work = Work()
    work.gate.clear()

    async def test(batches):
        futures = batches.submit(work.task, [0])
        await started(work)
        for number in range(1, 6):
            futures += batches.submit(work.task, [number])
        assert batches.waiting == 5
        work.gate.set()
        await asyncio.gather(*futures)

    run(test)
    assert work.batches == [[0], [1, 2, 3, 4, 5]]


def test_a_batch_has_at_most_the_largest_size():
    work = Work()

    async def test(batches):
        await asyncio.gather(*batches.submit(work.task, range(10)))

    run(test, max_batch=4)
    assert [*map(len, work.batches)] == [4, 4, 2]


def test_a_long_request_takes_turns_with_short_ones():
    work = Work()
    work.gate.clear()

    async def test(batches):
        futures = batches.submit(work.task, [0])
        await started(work)
        futures += batches.submit(work.task, range(100, 200))
        futures += batches.submit(work.task, [1]) + batches.submit(work.task, [2])
        work.gate.set()
        await asyncio.gather(*futures)

    run(test, max_batch=4)
    assert work.batches[1] == [100, 1, 2, 101]


def test_long_sentences_leave_a_thread_for_short_ones():
    long, short = Work("long", is_long=True), Work("short")
    long.gate.clear()

    async def test(batches):
        waiting = batches.submit(long.task, range(10))
        await started(long)
        assert await asyncio.gather(*batches.submit(short.task, [1])) == [2]
        long.gate.set()
        await asyncio.gather(*waiting)

    run(test, max_batch=2)
    assert len(long.batches) == 5


def answered_and_back(back: int, pause: float) -> tuple[list[int], float]:
    """Answer four clients, of whom some come back one by one.

    Returns:
        The sizes of the batches, and the seconds until all were answered again.
    """
    work = Work()
    work.seconds = 0.5

    async def test(batches):
        await asyncio.gather(*batches.submit(work.task, range(4)))
        start = time.monotonic()
        futures = []
        for number in range(back):
            futures += batches.submit(work.task, [number])
            await asyncio.sleep(pause)
        await asyncio.gather(*futures)
        return time.monotonic() - start

    seconds = run(test, max_delay_ms=1000)
    return [*map(len, work.batches)], seconds


def test_an_idle_thread_waits_for_clients_that_were_answered():
    assert answered_and_back(4, pause=0.01)[0] == [4, 4]


def test_it_waits_at_most_a_fifth_of_the_time_of_a_batch():
    sizes, seconds = answered_and_back(2, pause=0.01)
    assert sizes == [4, 2]
    assert 0.5 + 0.1 <= seconds < 0.5 + 0.3


def test_a_client_alone_does_not_wait():
    work = Work()
    work.seconds = 0.2

    async def test(batches):
        for number in range(3):
            start = time.monotonic()
            await asyncio.gather(*batches.submit(work.task, [number]))
        return time.monotonic() - start

    assert run(test, max_delay_ms=1000) < 0.23


def test_threads_share_what_waits():
    work = Work()
    work.seconds = 0.05

    async def test(batches):
        await asyncio.gather(*batches.submit(work.task, range(10)))

    run(test, workers=2)
    assert [*map(len, work.batches)] == [5, 5]


def test_a_full_queue_refuses_and_says_when_to_come_again():
    work = Work()
    work.gate.clear()

    async def test(batches):
        futures = batches.submit(work.task, [0])
        await started(work)
        batches.admit(50)
        futures += batches.submit(work.task, range(10))
        batches.admit(10)
        with pytest.raises(ServiceError, match=r"10 sentences are waiting") as error:
            batches.admit(11)
        assert error.value.status == 429
        assert int(error.value.headers["Retry-After"]) >= 1
        work.gate.set()
        await asyncio.gather(*futures)

    run(test, max_queue=20)


def test_cancelled_items_free_their_places_and_are_not_worked_on():
    work = Work()
    work.gate.clear()

    async def test(batches):
        futures = batches.submit(work.task, [0])
        await started(work)
        left = batches.submit(work.task, [1, 2, 3])
        futures += batches.submit(work.task, [4])
        for future in left:
            future.cancel()
        await asyncio.sleep(0)
        assert batches.waiting == 1
        work.gate.set()
        assert await asyncio.gather(*futures) == [0, 8]
        assert batches.waiting == 0

    run(test)
    assert work.batches == [[0], [4]]


def test_a_failed_batch_fails_its_items_and_the_next_one_works():
    work = Work()

    async def test(batches):
        failed = batches.submit(work.task, [-1])
        with pytest.raises(ValueError, match="negative"):
            await failed[0]
        return await asyncio.gather(*batches.submit(work.task, [3]))

    assert run(test) == [6]


@pytest.mark.parametrize("error", [StopIteration("end"), SystemExit("out of Rust")])
def test_no_exception_takes_a_thread_for_ever(error):
    def fail(items: Sequence[int]) -> list[int]:
        raise error

    def forget(items: Sequence[int]) -> list[int]:
        return []

    async def test(batches):
        for run_batch, message in ((fail, "a batch failed"), (forget, "has 0 results")):
            failed = batches.submit(Task(message, run_batch), [1])
            with pytest.raises(RuntimeError, match=message):
                await failed[0]
        return await asyncio.gather(*batches.submit(Work().task, [3]))

    assert run(test) == [6]


def test_requests_that_share_no_batch_do_not_starve_the_others():
    alone, shared = Work("alone"), Work("shared")
    alone.gate.clear()

    async def test(batches):
        first = batches.submit(shared.task, [0])
        await asyncio.gather(*first)
        waiting = batches.submit(alone.task, [0])
        await started(alone)
        answered = batches.submit(shared.task, [1])
        waiting += [
            batches.submit(Task(object(), alone.task.run), [n])[0] for n in range(9)
        ]
        alone.gate.set()
        await asyncio.gather(*answered)
        assert len(alone.batches) <= 2
        await asyncio.gather(*waiting)

    run(test)
