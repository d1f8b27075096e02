"""Random choices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

_Choice = TypeVar("_Choice")


class Draw:
    """A source of random choices, the same on every platform.

    Args:
        seed: Text that decides all choices.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """Return true with the given probability."""
        return self._random() < probability

    def below(self, bound: int) -> int:
        """Return a number from 0 to `bound` - 1."""
        return int(self._random() * bound)

    def pick(self, choices: Sequence[_Choice]) -> _Choice:
        """Return one of the choices; repeated choices are drawn more often."""
        return choices[int(self._random() * len(choices))]
