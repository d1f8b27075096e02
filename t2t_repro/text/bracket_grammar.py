"""The grammar of trees over the words of a source, in tokens."""

from __future__ import annotations

import dataclasses

from t2t_repro.text.symbols import split_symbols


@dataclasses.dataclass(frozen=True)
class BracketGrammar:
    """Trees that have one leaf per word of the source, in the order of the words.

    An output is a sequence of leaves and constituents. A constituent is an opening
    token, at least one leaf or constituent, and the closing token that belongs to the
    opening one. Several constituents may follow each other at the top, under a root
    that is not written.

    It consists of numbers alone, so that a search can follow it inside a graph. Tokens
    that it does not name occur in no output.

    Attributes:
        brackets: Each opening token and its closing token.
        leaves: Tokens that can be the leaf of a word, per kind of word; at least one
            for each kind.
        kind_by_byte: Kind of a word by its first byte in UTF-8, 256 numbers.

    Raises:
        ValueError: If a kind has no leaf, or there are not 256 bytes.
    """

    brackets: tuple[tuple[int, int], ...]
    leaves: tuple[tuple[int, ...], ...]
    kind_by_byte: tuple[int, ...]

    def __post_init__(self) -> None:
        if not all(self.leaves):
            raise ValueError(
                f"Every kind of word needs a leaf. Received: leaves={self.leaves}"
            )
        kinds = range(len(self.leaves))
        if len(self.kind_by_byte) != 256 or not set(self.kind_by_byte) <= set(kinds):
            raise ValueError(
                f"`kind_by_byte` must have 256 numbers below {len(self.leaves)}. "
                f"Received: {self.kind_by_byte}"
            )

    def word_kinds(self, source: str) -> list[int]:
        """Return the kind of each word of a source with white space between words."""
        return [
            self.kind_by_byte[word.encode("utf-8", "replace")[0]]
            for word in split_symbols(source)
        ]
