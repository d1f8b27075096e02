"""Counters of words and open brackets, for encodings of positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from t2t_repro.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.data.problem import Problem
    from t2t_repro.text.tokenizer import Tokenizer


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
    def of(
        cls,
        problem: Problem,
        source: Tokenizer,
        target: Tokenizer,
        *,
        words: bool,
        depth: bool,
    ) -> Self:
        """Return counters of the words on both sides and of a target's open brackets.

        Args:
            problem: Problem whose targets have the words and brackets.
            source: Tokenizer of the inputs.
            target: Tokenizer of the targets.
            words: Whether to count words.
            depth: Whether to count open brackets.

        Raises:
            UserError: If open brackets are to be counted, and the targets have none.
        """
        of_source, of_target = [], []
        if words:
            of_source.append(TokenCounter(source.word_starts()))
            of_target.append(TokenCounter(problem.word_tokens(target)))
        if depth:
            brackets = problem.bracket_tokens(target)
            if not brackets:
                raise UserError(
                    "received depth_positions=True, expected False: the problem's "
                    "targets have no brackets."
                )
            opening, closing = zip(*brackets, strict=True)
            of_target.append(TokenCounter(opening, closing))
        return cls(tuple(of_source), tuple(of_target))

    @classmethod
    def from_config(cls, config: Sequence[Sequence[Sequence[Sequence[int]]]]) -> Self:
        """Return counters whose tuples are lists, as in a JSON file."""
        sides = ([TokenCounter(*map(tuple, c)) for c in side] for side in config)
        return cls(*map(tuple, sides))
