"""Work in threads, with results in order."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], num_threads: int
) -> Iterator[Result]:
    """Apply a function to items in threads, and yield the results in order.

    At most `2 * num_threads + 1` items are submitted before a result is yielded. An
    exception of the function is raised in place of its result. Then, or when the caller
    stops, items that have not begun are dropped, and the function waits for those that
    are running.

    Args:
        function: Called in the threads.
        items: Iterated in the caller's thread.
        num_threads: Number of threads. With 1, the caller's thread does the work.
    """
    if num_threads == 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(num_threads)
    waiting: collections.deque[Future[Result]] = collections.deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
