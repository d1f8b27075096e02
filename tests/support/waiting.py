"""Wait for what another process does in its own time, such as a browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

LOOKS = 500
PAUSE = 0.02  # seconds


def until(look: Callable[[], Result], looks: int = LOOKS) -> Result:
    """Return the first true result of a function that is called again and again.

    The limit is a number of calls, not a time: on a loaded machine, or after a pause
    of the whole machine, each call takes longer, and so does what it waits for.

    Args:
        look: Function without side effects.
        looks: Number of calls, 0.02 seconds apart, before the test fails.
    """
    for _ in range(looks):
        found = look()
        if found:
            return found
        time.sleep(PAUSE)
    raise AssertionError(f"{look.__name__} was never true in {looks} looks: {found!r}")
