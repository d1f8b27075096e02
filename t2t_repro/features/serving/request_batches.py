"""Translate the sentences of all requests in batches.

The sentences that wait while the cores are busy form the next batch. Everything here
runs in the thread of the event loop, so nothing needs a lock; only the work itself runs
in threads.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from t2t_repro.features.serving.service_settings import ServiceError, ServiceSettings

# A sentence of more bytes of UTF-8 is long: about 6 average sentences of news. Its
# search takes seconds, in which the short sentences of a batch would wait.
LONG_SENTENCE = 800
_KEPT_LANES = 32  # an empty lane remembers which clients will be back
_NEWEST = 0.2  # weight of the newest batch in averages
_MOST_IDLE = 0.2  # of the time of a batch, in which an idle thread waits for more

Items = Sequence[Any]


@dataclasses.dataclass(frozen=True)
class Task:
    """What is done with items that may share a batch.

    Attributes:
        key: Items of equal keys share batches.
        run: Returns one result per item, in the same order; called in a thread.
        is_long: Whether an item takes much longer than a sentence usually does.
    """

    key: Hashable
    run: Callable[[Items], Items]
    is_long: bool = False


@dataclasses.dataclass(eq=False)
class _Waiting:
    """The items of a request that are not in a batch yet."""

    items: deque[tuple[Any, asyncio.Future[Any]]]
    since: float


class _Lane:
    """The waiting items of one task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.requests: deque[_Waiting] = deque()
        self.last_start = time.monotonic()
        self.running = 0  # items in batches
        self.seconds = 0.0  # of a batch, on average
        # Items answered just now, whose clients may come back until a time.
        self._returning, self._return_until = 0, 0.0

    def count(self) -> int:
        return sum(len(request.items) for request in self.requests)

    def since(self) -> float:
        """Return when the oldest request that waits came."""
        return min(request.since for request in self.requests)

    def arrive(self, number: int) -> None:
        """Count new items, which may be of clients that came back."""
        self._returning = max(0, self._returning - number)

    def leave(self, number: int, until: float) -> None:
        """Count answered items, whose clients may come back until a time."""
        self.running -= number
        self._returning = self._expected(time.monotonic()) + number
        self._return_until = until

    def _expected(self, now: float) -> int:
        return self._returning if now < self._return_until else 0

    def share(self, threads: int, now: float) -> int:
        """Return the items of a batch if all items of now were shared by the threads.

        They are those that wait, that are in batches, and whose clients will be back.
        """
        total = self.count() + self.running + self._expected(now)
        return math.ceil(total / threads)

    def take(self, number: int) -> list[tuple[Any, asyncio.Future[Any]]]:
        """Take one item of each request in turn, so that a long one delays no other."""
        batch = []
        while len(batch) < number and self.requests:
            request = self.requests.popleft()
            batch.append(request.items.popleft())
            if request.items:
                self.requests.append(request)
        return batch


def _started_threads(number: int) -> ThreadPoolExecutor:
    """Return threads that have started, so that none is missing when it is needed."""
    pool, all_started = ThreadPoolExecutor(number, "translate"), Barrier(number)
    for started in [pool.submit(all_started.wait) for _ in range(number)]:
        started.result()
    return pool


def _results(task: Task, items: Items) -> list[Any]:
    """Do the work of a batch in a thread.

    Raises:
        Exception: Any that a future accepts.
    """
    try:
        results = [*task.run(items)]
    except BaseException as error:
        # Futures refuse StopIteration; what Rust raises is no Exception.
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            raise
        raise RuntimeError(f"a batch failed: {error!r}") from error
    if len(results) != len(items):
        raise RuntimeError(f"a batch of {len(items)} has {len(results)} results")
    return results


def _average(average: float, newest: float) -> float:
    """Return a running average; 0 is none yet."""
    return average + _NEWEST * (newest - average) if average else newest


class Batches:
    """A bounded queue of items, and the threads that work on them.

    Ordinary items use at most `num_workers` threads, and long ones, too; there is one
    more thread than that. So a thread is always left for the ordinary ones, which then
    share the cores with the long ones instead of waiting for them.

    Args:
        settings: Limits.
        observe: Called with the size and the seconds of every batch.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        observe: Callable[[int, float], None] = lambda size, seconds: None,
    ) -> None:
        self._settings = settings
        self._observe = observe
        self._per_kind = settings.num_workers
        self._pool = _started_threads(self._per_kind + 1)
        self._lanes: dict[Hashable, _Lane] = {}
        self._running = {False: 0, True: 0}  # batches, by whether they are long
        self._idle_since = {False: 0.0, True: 0.0}  # a thread for them
        self._rate = 0.0  # items per second of one thread
        self._timer: asyncio.TimerHandle | None = None
        self.waiting = 0

    def admit(self, count: int) -> None:
        """Refuse a request if the queue is full.

        Args:
            count: Number of its items.

        Raises:
            ServiceError: If it is full. A request of any size may wait alone.
        """
        if self.waiting and self.waiting + count > self._settings.max_queue:
            raise self._full()

    def submit(self, task: Task, items: Items) -> list[asyncio.Future[Any]]:
        """Queue items of a request that was admitted.

        Args:
            task: What to do with them.
            items: At least one.

        Returns:
            The future result of each item. Cancel those that nobody needs.
        """
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in items]
        lane = self._lanes.setdefault(task.key, _Lane(task))
        pairs = deque(zip(items, futures, strict=True))
        request = _Waiting(pairs, time.monotonic())
        lane.requests.append(request)
        lane.arrive(len(items))
        self.waiting += len(items)
        leave = functools.partial(self._leave, lane, request)
        for future in futures:
            future.add_done_callback(leave)
        self._dispatch()
        return futures

    def close(self) -> None:
        """Wait for the threads."""
        self._pool.shutdown(cancel_futures=True)

    def _full(self) -> ServiceError:
        threads = self._rate * self._per_kind
        seconds = math.ceil(self.waiting / threads) if threads else 1
        after = max(1, min(seconds, math.ceil(self._settings.deadline)))
        return ServiceError(
            429,
            f"{self.waiting:,} sentences are waiting, expected at most "
            f"{self._settings.max_queue:,}: try again in {after} s.",
            {"Retry-After": str(after)},
        )

    def _leave(
        self, lane: _Lane, request: _Waiting, future: asyncio.Future[Any]
    ) -> None:
        """Remove the items of a request that was cancelled while it waited."""
        if not future.cancelled() or not request.items:
            return
        kept = deque(pair for pair in request.items if not pair[1].cancelled())
        self.waiting -= len(request.items) - len(kept)
        request.items = kept
        if not kept:
            lane.requests.remove(request)
            self._dispatch()

    def _free(self, is_long: bool) -> int:
        """Return how many batches of a kind may start now."""
        total = self._per_kind + 1 - sum(self._running.values())
        return min(total, self._per_kind - self._running[is_long])

    def _delay(self, lane: _Lane) -> float:
        """Return how long an idle thread waits for more items, in seconds."""
        longest = self._settings.max_delay_ms / 1000
        return min(longest, _MOST_IDLE * lane.seconds)

    def _dispatch(self) -> None:
        """Start batches on idle threads, and look again when the next one is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now, due = time.monotonic(), math.inf
        for lane in sorted(self._lanes.values(), key=lambda lane: lane.last_start):
            if not lane.requests and len(self._lanes) > _KEPT_LANES:
                del self._lanes[lane.task.key]
            while lane.requests and (free := self._free(lane.task.is_long)) > 0:
                # Clients that wait for answers come back together: an idle thread
                # waits a little for its share of them.
                share = min(lane.share(self._per_kind, now), self._settings.max_batch)
                idle_since = self._idle_since[lane.task.is_long]
                ripe = max(lane.since(), idle_since) + self._delay(lane)
                if lane.count() < share and now < ripe:
                    due = min(due, ripe)
                    break
                size = max(share, math.ceil(lane.count() / free))
                self._start(lane, lane.take(min(size, self._settings.max_batch)))
        if due < math.inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(due - now, self._dispatch)

    def _start(self, lane: _Lane, batch: list[tuple[Any, asyncio.Future[Any]]]) -> None:
        task = lane.task
        lane.last_start = time.monotonic()
        lane.running += len(batch)
        self.waiting -= len(batch)
        self._running[task.is_long] += 1
        items = [item for item, _ in batch]
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._pool, _results, task, items)
        futures = [future for _, future in batch]
        done.add_done_callback(
            functools.partial(self._finish, lane, futures, lane.last_start)
        )

    def _finish(
        self,
        lane: _Lane,
        futures: Iterable[asyncio.Future[Any]],
        start: float,
        done: asyncio.Future[Items],
    ) -> None:
        now, is_long, futures = time.monotonic(), lane.task.is_long, [*futures]
        if not self._free(is_long):
            self._idle_since[is_long] = now
        self._running[is_long] -= 1
        seconds = now - start
        lane.seconds = _average(lane.seconds, seconds)
        self._rate = _average(self._rate, len(futures) / max(seconds, 1e-6))
        # It takes some of this time to write the answers and to read new requests.
        lane.leave(len(futures), now + 2 * self._delay(lane))
        self._observe(len(futures), seconds)
        error = None if done.cancelled() else done.exception()
        results = itertools.repeat(None) if error or done.cancelled() else done.result()
        for future, result in zip(futures, results, strict=False):
            if future.done():
                continue
            if error:
                future.set_exception(error)
            elif done.cancelled():
                future.cancel()
            else:
                future.set_result(result)
        self._dispatch()
