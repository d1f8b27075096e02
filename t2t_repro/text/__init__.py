"""Tokenizers: text to ids and back, the same in Python and inside the graph."""

from __future__ import annotations

from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.text.subwords import SentencePieceTokenizer, train_sentencepiece
from t2t_repro.text.tokenizer import SymbolTokenizer, Tokenizer

__all__ = [
    "SentencePieceTokenizer",
    "SymbolTokenizer",
    "Tokenizer",
    "load_tokenizer",
    "train_sentencepiece",
]

_TOKENIZERS: tuple[type[Tokenizer], ...] = (SentencePieceTokenizer, SymbolTokenizer)


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Read a tokenizer's file, whose suffix names its kind.

    Args:
        path: A `.model` (SentencePiece) or `.symbols` file.

    Raises:
        UserError: If the file is missing, damaged or of another kind.
    """
    for tokenizer in _TOKENIZERS:
        if Path(path).suffix == tokenizer.filename_suffix:
            return tokenizer.load(path)
    suffixes = " or ".join(tokenizer.filename_suffix for tokenizer in _TOKENIZERS)
    raise UserError(f"received vocabulary file {path}, expected its name in {suffixes}")
