"""Answer requests of `compare.py` in the interpreter of one engine.

Imports nothing of this package, because other engines have other environments, one of
them with Python 3.7.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

# beam size -> ids of the best translation of every sentence, without EOS
Translate: TypeAlias = "Callable[[int], Sequence[Sequence[int]]]"


def serve(translate: Translate) -> None:
    """Read a beam size per line, translate, and write times and outputs as JSON.

    Args:
        translate: Translates all sentences.
    """
    for line in sys.stdin:
        beam_size = int(line)
        start = time.perf_counter()
        ids = translate(beam_size)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # GB
        answer = {"seconds": seconds, "gigabytes": peak, "ids": [[*row] for row in ids]}
        print(f"ANSWER {json.dumps(answer)}", flush=True)


def batches(
    sources: Sequence[Sequence[int]], size: int
) -> list[list[tuple[int, list[int]]]]:
    """Return batches of numbered sources of similar length, longest first."""
    order = sorted(enumerate(sources), key=lambda item: -len(item[1]))
    return [
        [(number, list(ids)) for number, ids in order[start : start + size]]
        for start in range(0, len(order), size)
    ]
