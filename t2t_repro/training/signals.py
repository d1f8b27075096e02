"""Handle a request to stop: SIGTERM from a cluster, SIGINT from the keyboard."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any


class SignalGuard:
    """Scope that handles the first SIGTERM or SIGINT; a second one acts as usual.

    Args:
        action: Function of the signal's number.
    """

    SIGNALS = (signal.SIGTERM, signal.SIGINT)

    def __init__(self, action: Callable[[int], None]) -> None:
        self._action = action
        self._before: dict[int, Any] = {}

    def __enter__(self) -> SignalGuard:
        # Python delivers signals to the main thread only.
        if threading.current_thread() is threading.main_thread():
            for number in self.SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: object) -> None:
        self._restore()
        self._action(number)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __exit__(self, *error: object) -> None:
        self._restore()
