"""Check the pairs of a problem, which may be the user's own code."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2t_repro.data.problem import Problem
from t2t_repro.errors import UserError
from t2t_repro.text.lines import is_blank

Pair = tuple[str, str]


def checked_pairs(
    problem: Problem, split: str, tmp_dir: str | Path | None
) -> Iterator[Pair]:
    """Yield the pairs of a split.

    Args:
        problem: The problem.
        split: One of its splits.
        tmp_dir: Folder for downloads, or None for the source's own default.

    Yields:
        Source text and target text.

    Raises:
        UserError: If the problem yields anything but two strings.
    """
    pairs = problem.pairs(split, tmp_dir)
    if not isinstance(pairs, Iterable):
        raise UserError(
            f"problem {problem.name}, split {split}: received {reprlib.repr(pairs)} "
            "from `pairs`, expected an iterator of pairs: yield them one by one"
        )
    for number, pair in enumerate(pairs, start=1):
        if not _is_pair(pair):
            raise UserError(
                f"problem {problem.name}, split {split}: received "
                f"{reprlib.repr(pair)} as pair {number}, expected a tuple of two "
                "strings, source and target: change what its `pairs` yields"
            )
        yield pair


def _is_pair(pair: object) -> bool:
    return (
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and all(isinstance(text, str) for text in pair)
    )


def has_empty_side(pair: tuple[str, str]) -> bool:
    """Return whether a side is empty or blank."""
    return any(map(is_blank, pair))
