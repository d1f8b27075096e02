"""Show the progress of long work: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import logging
import sys
import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.progress

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 30.0
SECONDS_BEFORE_RATE = 2.0  # a rate over a shorter time is unreliable

SECONDS_BETWEEN_DRAWINGS = 0.1
_ERASED = "\r\033[K"  # back to the start of the line, erase to its end

_allowed = contextvars.ContextVar("bars_allowed", default=True)


@contextlib.contextmanager
def bars_allowed(allowed: bool) -> Generator[None]:
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
def status(text: str) -> Generator[None]:
    """Show the current work on one line of a terminal until it is done.

    Args:
        text: The work, such as "importing TensorFlow".
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


class Progress(contextlib.AbstractContextManager):
    """Progress bar or lines: how much work is done, and how long the rest takes.

    The first call of `advance` starts the clock: the first batch of a model takes
    far longer than the others, because TensorFlow traces and compiles it.

    rich draws the bar. The estimate is our own, because rich's does not know which
    units are long, or that a shape was compiled among them: for 80 batches of very
    different length, with 51 seconds left, rich said 277, or 93 if it was told their
    lengths; this says 50.

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
        self._last_line = self._last_drawing = time.monotonic()
        self._clock = (self._last_line, done) if warm else None
        self._keep_bar = keep_bar
        self._bar = self._new_bar() if draw_bar and may_draw_bars() else None
        if self._bar is not None:
            self._bar.add_task("", total=total, completed=done)
            self._bar.start()

    def _new_bar(self) -> rich.progress.Progress:
        # Only a terminal needs the package.
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn
        from rich.progress import Progress as Bar
        from rich.text import Text

        class Numbers(ProgressColumn):
            """The count, the seconds and the rate."""

            render = staticmethod(lambda _: Text(self._numbers()))

        columns = [] if self._total is None else [BarColumn(None)]
        # Without the thread of rich: it draws when work is done.
        return Bar(
            *columns,
            Numbers(),
            console=Console(file=sys.stderr),
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            expand=True,
        )

    def _numbers(self) -> str:
        """Return the text beside the bar."""
        rate = self._rate()
        known = "" if self._total is None else f"/{self._total}"
        seconds = time.monotonic() - self._clock[0] if self._clock else 0
        left = f"<{self._time_left() or '?'}" if known else ""
        speed = f"{rate:.2f} {self._unit}/s" if rate else f"? {self._unit}/s"
        return f"{self._done}{known} [{_interval(seconds)}{left}, {speed}]"

    def advance(self, count: int = 1) -> None:
        """Count units that have been done since the last call."""
        self._done += count
        if self._clock is None:
            self._clock = time.monotonic(), self._done
        self._draw()
        if self._bar is not None or self._seconds_between_lines is None:
            return
        if time.monotonic() - self._last_line >= self._seconds_between_lines:
            rate = self._rate()
            self.message(f"{rate:.1f} per second" if rate else "")

    def _draw(self) -> None:
        if self._bar is None:
            return
        now = time.monotonic()
        is_due = now - self._last_drawing >= SECONDS_BETWEEN_DRAWINGS
        if is_due or not self._bar.live.is_started:
            self._last_drawing = now
            self._bar.start()
            self._bar.update(self._bar.task_ids[0], completed=self._done, refresh=True)

    def message(self, text: str) -> None:
        """Show a line of text, with the position and the time left.

        On a terminal the bar shows the time left, and the line appears above it.
        """
        self._last_line = time.monotonic()
        position = f"{self._unit} {self._done}"
        if self._bar is not None:
            line = "  ".join(filter(None, (position, text)))
            self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
            return
        left = self._time_left()
        known = position if self._total is None else f"{position}/{self._total}"
        parts = (known, text, left and f"time left {left}")
        logger.info("%s", "  ".join(filter(None, parts)))

    @contextlib.contextmanager
    def task(self, text: str) -> Generator[None]:
        """Show a line, with its seconds, during work that does not count for any unit.

        On a terminal the line appears above the bar at once. Without a bar, it is
        logged at the end.

        Args:
            text: The work, such as "compiling shape 3 of 6".
        """
        start = time.monotonic()
        if self._bar is not None:
            self.clear()
            _show(f"{text} ...")
        try:
            yield
        finally:
            seconds = time.monotonic() - start
            if self._clock is not None:
                self._clock = self._clock[0] + seconds, self._clock[1]
            if self._bar is not None:
                _show(f" {seconds:.1f} s\n")
                self._draw()
            else:
                logger.info("%s: %.1f s", text, seconds)

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
            return _interval(0)
        if self._clock is None or self._rate() is None:
            return None
        start, done_before = self._clock
        before, now, end = (
            units if self._work is None else self._work[units]
            for units in (done_before, self._done, self._total)
        )
        return _interval((time.monotonic() - start) * (end - now) / (now - before))

    def clear(self) -> None:
        """Erase the bar until the next `advance`, to print on the same terminal."""
        self._stop(keep=False)

    def close(self) -> None:
        """Finish the bar."""
        if self._bar is not None and self._keep_bar:
            self._last_drawing = -SECONDS_BETWEEN_DRAWINGS
            self._draw()
        self._stop(keep=self._keep_bar)

    def _stop(self, *, keep: bool) -> None:
        if self._bar is not None:
            self._bar.live.transient = not keep
            self._bar.stop()

    def __exit__(self, *error: object) -> None:
        self.close()


def _interval(seconds: float) -> str:
    """Return seconds as minutes and seconds, such as "02:57", or "1:02:57"."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
