"""Show the progress of long work: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from tqdm import tqdm

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 30.0
SECONDS_BEFORE_RATE = 2.0  # a rate over a shorter time is unreliable


_ERASED = "\r\033[K"  # back to the start of the line, erase to its end


@contextlib.contextmanager
def status(text: str) -> Iterator[None]:
    """Show what the program is doing, on one line of a terminal, until it is done.

    Args:
        text: Such as "importing TensorFlow".
    """
    if not sys.stderr.isatty():
        yield
        return
    handlers = logging.getLogger(__package__).handlers
    _show(f"{_ERASED}{text} ...")
    for handler in handlers:
        handler.addFilter(_erase)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_erase)
        _show(_ERASED)


def _show(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _erase(record: logging.LogRecord) -> bool:
    """Erase the status, so that a line of the log does not follow it."""
    del record
    _show(_ERASED)
    return True


class Progress:
    """Count units of work, and show how many are done and how long the rest takes.

    The first call of `advance` starts the clock: the first batch of a model takes
    far longer than the others, because TensorFlow traces and compiles it.

    Args:
        total: Number of units at the end.
        unit: Name of a unit, in the singular.
        done: Number of units that are already done.
        seconds_between_lines: Without a bar, `advance` logs a line after this many
            seconds; None = only `message` logs.
        draw_bar: Whether to draw a bar if standard error is a terminal.
        keep_bar: Whether the bar stays on the terminal at the end.
    """

    def __init__(
        self,
        total: int,
        unit: str,
        *,
        done: int = 0,
        seconds_between_lines: float | None = SECONDS_BETWEEN_LINES,
        draw_bar: bool = True,
        keep_bar: bool = False,
    ) -> None:
        self._bar = tqdm(
            total=total,
            initial=done,
            unit=unit,
            disable=not (draw_bar and sys.stderr.isatty()),
            dynamic_ncols=True,
            leave=keep_bar,
        )
        self._total = total
        self._unit = unit
        self._done = done
        self._seconds_between_lines = seconds_between_lines
        self._last_line = time.monotonic()
        self._clock: tuple[float, int] | None = None

    def advance(self, count: int = 1) -> None:
        """Count units that have been done since the last call."""
        self._done += count
        if self._clock is None:
            self._start_clock()
        else:
            self._bar.update(count)
        if self._line_is_due():
            rate = self._rate()
            self.message(f"{rate:.1f} per second" if rate else "")

    def message(self, text: str) -> None:
        """Show a line of text, with the position and the time left.

        On a terminal the bar shows the time left, and the line appears above it.
        """
        self._last_line = time.monotonic()
        position = f"{self._unit} {self._done}"
        if not self._bar.disable:
            self._bar.write("  ".join(filter(None, (position, text))), file=sys.stderr)
            return
        left = self._time_left()
        parts = (f"{position}/{self._total}", text, left and f"time left {left}")
        logger.info("%s", "  ".join(filter(None, parts)))

    def _line_is_due(self) -> bool:
        seconds = self._seconds_between_lines
        if seconds is None or not self._bar.disable:
            return False
        return time.monotonic() - self._last_line >= seconds

    def _start_clock(self) -> None:
        self._clock = time.monotonic(), self._done
        if not self._bar.disable:
            self._bar.reset()
            self._bar.initial = self._bar.n = self._bar.last_print_n = self._done
            self._bar.refresh()

    def _rate(self) -> float | None:
        """Return the units per second, or None while it is too early to tell."""
        if self._clock is None:
            return None
        start, done_before = self._clock
        seconds, done = time.monotonic() - start, self._done - done_before
        return done / seconds if done and seconds >= SECONDS_BEFORE_RATE else None

    def _time_left(self) -> str | None:
        if self._done >= self._total:
            return tqdm.format_interval(0)
        rate = self._rate()
        if rate is None:
            return None
        return tqdm.format_interval((self._total - self._done) / rate)

    def close(self) -> None:
        """Finish the bar."""
        self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
