"""A vocabulary of given symbols with white space between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.constants import UNK_ID
from t2t_repro.errors import UserError
from t2t_repro.text.lines import is_blank
from t2t_repro.text.tokenizer import Tokenizer, ids_of_text, read_vocabulary_file

if TYPE_CHECKING:
    from t2t_repro.text.in_graph import InGraphTokenizer

SPECIAL_SYMBOLS = ("<pad>", "</s>", "<unk>")


def split_symbols(text: str) -> list[str]:
    """Split a text at ASCII white space, as TensorFlow's operation does."""
    return [word.decode() for word in text.encode("utf-8", "replace").split()]


class SymbolTokenizer(Tokenizer):
    """Tokenizer of given symbols, whose ids follow the three special ones.

    Args:
        symbols: The symbols, without the special ones and without white space.

    Raises:
        ValueError: If a symbol is empty, contains white space, or occurs twice.
    """

    filename_suffix = ".symbols"

    def __init__(self, symbols: Sequence[str]) -> None:
        entries = (*SPECIAL_SYMBOLS, *symbols)
        for symbol in symbols:
            if split_symbols(symbol) != [symbol]:
                raise ValueError(
                    f"A symbol must be text without white space. Received: {symbol!r}"
                )
        if len(set(entries)) != len(entries):
            raise ValueError(f"Symbols must differ. Received: {tuple(symbols)}")
        self.symbols = tuple(symbols)
        self.vocab_size = len(entries)
        self._entries = entries
        self._ids = {
            symbol: len(SPECIAL_SYMBOLS) + index for index, symbol in enumerate(symbols)
        }

    @classmethod
    def load(cls, path: str | Path) -> SymbolTokenizer:
        try:
            entries = read_vocabulary_file(path).decode("utf-8").split("\n")
            if tuple(entries[: len(SPECIAL_SYMBOLS)]) != SPECIAL_SYMBOLS:
                raise ValueError("The special symbols are missing.")
            return cls([entry for entry in entries[len(SPECIAL_SYMBOLS) :] if entry])
        except ValueError as error:
            raise UserError(
                f"received vocabulary file {path}, expected one symbol per line after "
                f"{', '.join(SPECIAL_SYMBOLS)}: it is damaged or something else"
            ) from error

    def to_bytes(self) -> bytes:
        return ("\n".join(self._entries) + "\n").encode()

    def encode(self, text: str) -> list[int]:
        words = [] if is_blank(text) else split_symbols(text)
        return [self._ids.get(word, UNK_ID) for word in words]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self._entries[token] for token in ids_of_text(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._entries[token] for token in ids]

    def in_graph(self) -> InGraphTokenizer:
        from t2t_repro.text.in_graph import InGraphSymbols

        return InGraphSymbols(self._entries)
