"""Show how much of a text has been read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from t2t_repro.progress import Progress

_Item = TypeVar("_Item")

_PAIRS_PER_UPDATE = 1_000


def progress_of(total: int | None, unit: str, *, show_progress: bool) -> Progress:
    """Return the progress of a phase, as a bar or as lines of the log.

    Args:
        total: Number of units of the phase; None = unknown.
        unit: Name of a unit, in the singular.
        show_progress: Whether to draw a bar if standard error is a terminal.
    """
    return Progress(total, unit, warm=True, draw_bar=show_progress)


def counted(
    pairs: Iterable[_Item], total: int | None, *, show_progress: bool = True
) -> Iterator[_Item]:
    """Yield pairs, and show their number and the time left.

    Args:
        pairs: The pairs.
        total: Their approximate number; None = unknown.
        show_progress: Whether to draw a bar if standard error is a terminal.
    """
    with progress_of(total, "pair", show_progress=show_progress) as progress:
        waiting = 0
        for pair in pairs:
            yield pair
            waiting += 1
            if waiting == _PAIRS_PER_UPDATE:
                progress.advance(waiting)
                waiting = 0
        progress.advance(waiting)
