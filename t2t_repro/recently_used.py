"""A bounded store of values that are costly to make; imports no TensorFlow."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class RecentlyUsed(Generic[Value]):
    """The values that were used last, by key; threads may share it.

    Args:
        limit: Number of values to keep. One more drops the one that was not used for
            the longest time.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: collections.OrderedDict[Hashable, Value] = (
            collections.OrderedDict()
        )
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, which is made first if it is not there.

        One value is made at a time, so that threads never make a value twice.

        Args:
            key: The key.
            make: Called without arguments.
        """
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            self._values.move_to_end(key)
            if len(self._values) > self._limit:
                self._values.popitem(last=False)
            return self._values[key]
