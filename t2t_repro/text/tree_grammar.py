"""The grammar of the symbols that a parser writes."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_repro.text.bracket_grammar import BracketGrammar
from t2t_repro.text.tree_symbols import LeafForm, initial, is_leaf
from t2t_repro.text.trees import words_of


def tree_grammar(entries: Sequence[str], leaves: LeafForm) -> BracketGrammar:
    """Return the grammar of the outputs that `from_symbols` need not repair.

    A word whose initial no leaf of the vocabulary has can get any leaf, which
    `from_symbols` then reports.

    Args:
        entries: The symbol of each token, the special ones first.
        leaves: The form of the leaves.

    Raises:
        ValueError: If no entry is a leaf.
    """
    tokens = {entry: token for token, entry in enumerate(entries)}
    closing = ((token, f"){entry[1:]}") for entry, token in tokens.items())
    brackets = tuple(
        (token, tokens[closes])
        for token, closes in closing
        if entries[token][0] == "(" and len(closes) > 1 and closes in tokens
    )
    every = tuple(token for entry, token in tokens.items() if is_leaf(entry))
    if leaves != "initial":
        return BracketGrammar(brackets, (every,), (0,) * 256)
    kinds = sorted({entries[token][0] for token in every})
    by_kind = [tuple(t for t in every if entries[t][0] == kind) for kind in kinds]
    number = {kind: index for index, kind in enumerate(kinds)}
    return BracketGrammar(
        brackets,
        (*by_kind, every),
        tuple(number.get(_initial_of_byte(byte), len(kinds)) for byte in range(256)),
    )


def _initial_of_byte(byte: int) -> str:
    """Return the initial of the words that begin with a byte of UTF-8."""
    # Only ASCII characters begin with a byte below 128; the others share an initial.
    character = chr(byte) if byte < 128 else "\N{LATIN SMALL LETTER E WITH ACUTE}"
    # A raw bracket begins with the character of `-LRB-`.
    words = words_of(character)
    return initial(words[0] if words else character)
