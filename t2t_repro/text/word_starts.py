"""The tokens that begin a word."""

from __future__ import annotations

from typing import NamedTuple

from t2t_repro.text.bracket_grammar import BracketGrammar
from t2t_repro.text.tokenizer import Tokenizer


class WordStarts(NamedTuple):
    """Tokens that begin a word, on both sides.

    Attributes:
        source: Ids of the source vocabulary, ascending.
        target: Ids of the target vocabulary, ascending.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]


def word_starts(
    source: Tokenizer, target: Tokenizer, grammar: BracketGrammar | None = None
) -> WordStarts:
    """Return the tokens that begin a word.

    Args:
        source: Tokenizer of the inputs.
        target: Tokenizer of the targets.
        grammar: Grammar of the targets. Its leaves represent the words; its brackets
            represent none.
    """
    begins = target.word_starts() if grammar is None else leaf_tokens(grammar)
    return WordStarts(source.word_starts(), begins)


def leaf_tokens(grammar: BracketGrammar) -> tuple[int, ...]:
    """Return every token that can be the leaf of a word, ascending."""
    return tuple(sorted({token for leaves in grammar.leaves for token in leaves}))
