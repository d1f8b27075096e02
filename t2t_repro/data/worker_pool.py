"""Apply a function to many items in worker processes, and keep their order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from t2t_repro.errors import UserError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# A worker process starts in about a second, which few items are not worth.
_ITEMS_BEFORE_WORKERS = 10
_ITEMS_WAITING_PER_WORKER = 3


def ordered_map(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    num_workers: int,
) -> Iterator[_Result]:
    """Yield `function(item)` for each item, in the order of the items.

    Only a few items are read ahead, so any number of items fits in memory. This process
    handles the first ones itself, and starts workers only if there are more.

    Args:
        function: A function or object that can be pickled. Each worker receives it
            once.
        items: The items. They and their results can be pickled.
        num_workers: Number of worker processes. With 1, none is started.

    Raises:
        UserError: If a worker process ends, for example because memory runs out.
    """
    remaining = iter(items)
    if num_workers == 1:
        yield from map(function, remaining)
        return
    for _, item in zip(range(_ITEMS_BEFORE_WORKERS), remaining, strict=False):
        yield function(item)
    first = next(remaining, None)
    if first is not None:
        yield from _map_in_workers(function, first, remaining, num_workers)


def _map_in_workers(
    function: Callable[[_Item], _Result],
    first: _Item,
    items: Iterator[_Item],
    num_workers: int,
) -> Iterator[_Result]:
    pool = ProcessPoolExecutor(
        num_workers,
        # A forked process would inherit TensorFlow's locks without its threads.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(function,),
    )
    waiting: deque[Future[Any]] = deque()
    try:
        waiting.append(pool.submit(_call, first))
        for item in items:
            waiting.append(pool.submit(_call, item))
            if len(waiting) > _ITEMS_WAITING_PER_WORKER * num_workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise UserError(
            f"one of {num_workers} worker processes ended: give fewer num_workers if "
            "memory ran out. In a Python script, call this under `if __name__ == "
            "'__main__':`, because every worker imports the script"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_function: Callable[[Any], Any]


def _start_worker(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    # Ctrl-C reaches all processes of a terminal; the main process ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the main process ends, even if it is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(item: Any) -> Any:
    return _function(item)
