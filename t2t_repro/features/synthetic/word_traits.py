"""Words in both languages, traits of nouns, and random choices among them."""

from __future__ import annotations

import enum
import functools
import importlib.resources
import operator
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class Pair:
    """A word, phrase or sentence in both languages.

    Attributes:
        english: The English words, or their bracketed tree.
        german: The German words.
    """

    english: str
    german: str


@functools.cache
def _word_tables() -> dict[str, list[list[str]]]:
    """Read `data/words.txt`: the rows of each section, in columns."""
    file = (
        importlib.resources.files("t2t_repro.features.synthetic") / "data" / "words.txt"
    )
    tables: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            rows = tables[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            rows.append(line.split())
    return tables


def word_table(section: str) -> list[list[str]]:
    """Return the rows of a section of `data/words.txt`; none if it is not there."""
    return _word_tables().get(section, [])


def word_pairs(section: str) -> tuple[Pair, ...]:
    """Return the pairs of a section of entries "english:german"."""
    entries = (entry.split(":") for row in word_table(section) for entry in row)
    return tuple(Pair(english, german) for english, german in entries)


class Trait(enum.Flag):
    """A trait of a noun. Each noun has exactly one of the first seven."""

    MAN = enum.auto()  # "he"
    WOMAN = enum.auto()  # "she"
    CHILD = enum.auto()  # a person, but neither "he" nor "she"
    ANIMAL = enum.auto()
    THING = enum.auto()
    FOOD = enum.auto()
    PLACE = enum.auto()

    READABLE = enum.auto()
    CLOTHING = enum.auto()
    ACCESSORY = enum.auto()  # worn or carried: "with the red hat"
    OPENABLE = enum.auto()
    REPAIRABLE = enum.auto()
    WASHABLE = enum.auto()
    INTERIOR = enum.auto()  # can be cleaned up
    ENTERABLE = enum.auto()  # "in the garden"
    SURFACE = enum.auto()  # "on the island"
    LANDMARK = enum.auto()  # "near the bridge"
    VISITABLE = enum.auto()
    BUILDING_PART = enum.auto()  # "the door of the house"
    COMPOUND_HEAD = enum.auto()  # "garden door"
    RELATION = enum.auto()  # "the sister of the king"
    ORIGIN = enum.auto()  # "from the village"
    HARD = enum.auto()  # can be of stone, glass or gold

    PEOPLE = MAN | WOMAN | CHILD


NO_TRAITS = Trait(0)
PEOPLE = Trait.PEOPLE


def parse_traits(text: str) -> Trait:
    """Parse "thing,readable"; an empty text has no trait."""
    names = filter(None, text.upper().split(","))
    return functools.reduce(operator.or_, (Trait[name] for name in names), NO_TRAITS)


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
