"""Words in both languages, and readers of the tables that list them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """A word, phrase or sentence in both languages.

    Attributes:
        english: The English words, or their bracketed tree.
        german: The German words.
    """

    english: str
    german: str


def word_pairs(text: str) -> tuple[Pair, ...]:
    """Parse "english:german english:german"."""
    entries = (entry.partition(":") for entry in text.split())
    return tuple(Pair(english, german) for english, _, german in entries)


def table_rows(table: str) -> list[list[str]]:
    """Split a table of words into rows and columns."""
    return [line.split() for line in table.strip().split("\n")]
