"""How far long work has come: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def progress(total: int, unit: str) -> Iterator[Callable[[int], object]]:
    """Yield the function to call with the number of units done since its last call.

    Args:
        total: Units in all.
        unit: What is counted, in the singular.
    """
    if not sys.stderr.isatty():
        yield _Lines(total, unit).advance
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=unit, dynamic_ncols=True, leave=False) as bar:
        yield bar.update


class _Lines:
    def __init__(self, total: int, unit: str) -> None:
        self._total = total
        self._unit = unit
        self._done = 0
        self._start = self._last_line = time.monotonic()

    def advance(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._last_line < SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        rate = self._done / (now - self._start)
        logger.info(
            "%s of %s %ss, %.1f a second, %.0f s left",
            f"{self._done:,}",
            f"{self._total:,}",
            self._unit,
            rate,
            (self._total - self._done) / rate,
        )
