"""Traits of nouns, which decide what may be said about them."""

from __future__ import annotations

import enum
import functools
import operator


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
