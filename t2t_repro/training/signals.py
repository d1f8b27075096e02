"""Handle a request to stop: SIGTERM from a cluster, SIGINT from the keyboard."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

# Exit code of a command that a signal ended, minus the signal's number, as in a shell.
SIGNALLED = 128
# The stop of a service or of a job signals all processes, and a launcher such as
# `timeout` or the main process of an ensemble then signals its own once more.
SECONDS_OF_ONE_REQUEST = 2.0


class SignalGuard:
    """Scope that handles the first SIGTERM or SIGINT.

    Later ones act as usual, except those within `SECONDS_OF_ONE_REQUEST`, which count
    as the same request.

    Args:
        action: Function of the signal's number.
    """

    SIGNALS = (signal.SIGTERM, signal.SIGINT)

    def __init__(self, action: Callable[[int], None]) -> None:
        self._action = action
        self._before: dict[int, Any] = {}
        self._requested_at: float | None = None

    def __enter__(self) -> SignalGuard:
        # Python delivers signals to the main thread only.
        if threading.current_thread() is threading.main_thread():
            for number in self.SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if self._requested_at is None:
            self._requested_at = now
            self._action(number)
        elif now - self._requested_at >= SECONDS_OF_ONE_REQUEST:
            self._restore()
            signal.raise_signal(number)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __exit__(self, *error: object) -> None:
        self._restore()
