"""What positions are counted in besides tokens: words, and open brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self


class TokenCounter(NamedTuple):
    """A number that some tokens change.

    Attributes:
        plus: Ids of the tokens that increase it by one.
        minus: Ids of the tokens that decrease it by one.
    """

    plus: tuple[int, ...]
    minus: tuple[int, ...] = ()


class TokenCounters(NamedTuple):
    """The counters of both sides.

    Attributes:
        source: Counters of source tokens.
        target: Counters of target tokens.
    """

    source: tuple[TokenCounter, ...] = ()
    target: tuple[TokenCounter, ...] = ()

    @classmethod
    def from_config(cls, config: Sequence[Sequence[Sequence[Sequence[int]]]]) -> Self:
        """Return counters whose tuples are lists, as in a JSON file."""
        sides = ([TokenCounter(*map(tuple, c)) for c in side] for side in config)
        return cls(*map(tuple, sides))
