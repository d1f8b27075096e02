"""Repetition loops: words or syllables again and again directly after each other."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST = 8
WORD_REPEATS = 3
SHORTEST_SYLLABLE = 2  # one character repeats in "100000" and in "....."
SYLLABLE_REPEATS = 5
DEFINITION = (
    f"1 to {LONGEST} words at least {WORD_REPEATS} times directly after each other, or "
    f"{SHORTEST_SYLLABLE} to {LONGEST} characters of a word at least "
    f"{SYLLABLE_REPEATS} times"
)


def has_loop(text: str) -> bool:
    """Return whether a text has a repetition loop, as `DEFINITION` says.

    Words are separated by whitespace and compared with case and punctuation.
    """
    words = text.split()
    return any(
        _repeats(words, length, WORD_REPEATS) for length in range(1, LONGEST + 1)
    ) or any(
        _repeats(word, length, SYLLABLE_REPEATS)
        for word in set(words)
        for length in range(SHORTEST_SYLLABLE, LONGEST + 1)
    )


def _repeats(items: Sequence[str], length: int, times: int) -> bool:
    """Return whether some items of this length come so many times in a row."""
    if len(items) < length * times:
        return False
    needed, equal = length * (times - 1), 0
    for first, second in zip(items, items[length:], strict=False):
        equal = equal + 1 if first == second else 0
        if equal == needed:
            return True
    return False
