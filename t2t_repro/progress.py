"""Show the progress of long work: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 30.0
SECONDS_BEFORE_RATE = 2.0  # a rate over a shorter time is unreliable


_BAR_FORMAT = (
    "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{time_left}, {rate_fmt}{postfix}]"
)
_ERASED = "\r\033[K"  # back to the start of the line, erase to its end


_allowed = contextvars.ContextVar("bars_allowed", default=True)


@contextlib.contextmanager
def bars_allowed(allowed: bool) -> Iterator[None]:
    """Decide whether code inside the block may draw bars.

    This reaches code that has no argument for it, such as the user's own problem.

    Args:
        allowed: Whether bars may be drawn. False cannot be undone by an inner block.
    """
    token = _allowed.set(allowed and _allowed.get())
    try:
        yield
    finally:
        _allowed.reset(token)


def may_draw_bars() -> bool:
    """Return whether bars are allowed here and standard error is a terminal."""
    return _allowed.get() and sys.stderr.isatty()


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


class _Bar(tqdm):
    """A bar whose estimate comes from `Progress`, which knows the weights of units."""

    estimate: Callable[[], str | None] | None = None

    @property
    def format_dict(self) -> dict[str, Any]:
        """Return the values that the bar shows."""
        time_left = self.estimate() if self.estimate else None
        return {**super().format_dict, "time_left": time_left or "?"}


class Progress:
    """Progress bar or lines: how much work is done, and how long the rest takes.

    The first call of `advance` starts the clock: the first batch of a model takes
    far longer than the others, because TensorFlow traces and compiles it.

    Args:
        total: Number of units at the end; None = unknown.
        unit: Name of a unit, in the singular.
        done: Number of units that are already done.
        weights: Relative cost of each unit in the order of their completion, if their
            costs differ; by default all are equal.
        warm: Whether the clock starts at once, because everything is traced.
        seconds_between_lines: Without a bar, `advance` logs a line after this many
            seconds; None = only `message` logs.
        draw_bar: Whether to draw a bar if standard error is a terminal.
        keep_bar: Whether the bar stays on the terminal at the end.
    """

    def __init__(
        self,
        total: int | None,
        unit: str,
        *,
        done: int = 0,
        weights: Sequence[float] | None = None,
        warm: bool = False,
        seconds_between_lines: float | None = SECONDS_BETWEEN_LINES,
        draw_bar: bool = True,
        keep_bar: bool = False,
    ) -> None:
        self._total = total
        self._unit = unit
        self._done = done
        # Work done after a number of units
        self._work = [0.0, *itertools.accumulate(weights)] if weights else None
        self._seconds_between_lines = seconds_between_lines
        self._last_line = time.monotonic()
        self._clock: tuple[float, int] | None = None
        self._bar = _Bar(
            total=total,
            initial=done,
            unit=unit,
            disable=not (draw_bar and may_draw_bars()),
            dynamic_ncols=True,
            miniters=1,  # else it may wait for as many units as came last time
            leave=keep_bar,
            bar_format=None if total is None else _BAR_FORMAT,
        )
        self._bar.estimate = self._time_left
        if warm:
            self._start_clock()

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
        known = position if self._total is None else f"{position}/{self._total}"
        parts = (known, text, left and f"time left {left}")
        logger.info("%s", "  ".join(filter(None, parts)))

    @contextlib.contextmanager
    def task(self, text: str) -> Iterator[None]:
        """Show a line during work that no unit's time should count, with its seconds.

        On a terminal the line appears above the bar at once. Without a bar, it is
        logged at the end.

        Args:
            text: Such as "compiling shape 3 of 6".
        """
        start = time.monotonic()
        drawn = not self._bar.disable
        if drawn:
            self._bar.clear()
            _show(f"{text} ...")
        try:
            yield
        finally:
            seconds = time.monotonic() - start
            if self._clock is not None:
                self._clock = self._clock[0] + seconds, self._clock[1]
            if drawn:
                # The bar's rate is measured from these times.
                self._bar.start_t += seconds
                self._bar.last_print_t += seconds
                _show(f" {seconds:.1f} s\n")
                self._bar.refresh()
            else:
                logger.info("%s: %.1f s", text, seconds)

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
        if self._total is None:
            return None
        if self._done >= self._total:
            return tqdm.format_interval(0)
        if self._clock is None or self._rate() is None:
            return None
        start, done_before = self._clock
        work = self._work_of(self._done) - self._work_of(done_before)
        left = self._work_of(self._total) - self._work_of(self._done)
        return tqdm.format_interval((time.monotonic() - start) * left / work)

    def _work_of(self, units: int) -> float:
        """Return the work of the first units."""
        return units if self._work is None else self._work[units]

    def clear(self) -> None:
        """Erase the bar until the next `advance`, to print on the same terminal."""
        self._bar.clear()

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
