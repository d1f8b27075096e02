"""Answer requests of `compare.py` in the interpreter of one engine.

Imports nothing of this package, because other engines have other environments, one of
them with Python 3.7.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

# Rows, source length, target length (both with padding), real source tokens, real
# target tokens. Tokens include EOS.
Counts: TypeAlias = "tuple[int, int, int, int, int]"
WARM_UP = "warm_up"


def serve(
    warm_up: Callable[[], int],
    updates: Iterator[Counts],
    others: dict[str, Callable[[], dict]] | None = None,
) -> None:
    """Answer every line of standard input: "warm_up", or seconds to train.

    Args:
        warm_up: Makes the first update of every shape that is compiled, and returns
            the number of these shapes.
        updates: Makes an update whenever it is advanced, without end.
        others: Functions for other requests.
    """
    for line in sys.stdin:
        request = line.strip()
        if request == WARM_UP:
            answer = _timed_warm_up(warm_up)
        elif others and request in others:
            answer = others[request]()
        else:
            answer = _train(updates, float(request))
        answer["gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"ANSWER {json.dumps(answer)}", flush=True)


def _timed_warm_up(warm_up: Callable[[], int]) -> dict:
    start = time.perf_counter()
    shapes = warm_up()
    return {"seconds": time.perf_counter() - start, "shapes": shapes}


def _train(updates: Iterator[Counts], seconds: float) -> dict:
    """Train for at least so many seconds, to the end of an update."""
    batches = []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        batches.append(next(updates))
    return {"seconds": time.perf_counter() - start, "batches": batches}
