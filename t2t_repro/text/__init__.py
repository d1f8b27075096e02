"""Tokenizers: text to ids and back, the same in Python and inside the graph."""

from __future__ import annotations

import importlib
from pathlib import Path

from t2t_repro import features
from t2t_repro.errors import UserError
from t2t_repro.text.subwords import SentencePieceTokenizer, train_sentencepiece
from t2t_repro.text.tokenizer import SymbolTokenizer, Tokenizer

__all__ = [
    "SentencePieceTokenizer",
    "SymbolTokenizer",
    "Tokenizer",
    "load_tokenizer",
    "tokenizer_suffixes",
    "train_sentencepiece",
]

_TOKENIZERS: tuple[type[Tokenizer], ...] = (SentencePieceTokenizer, SymbolTokenizer)


def tokenizer_suffixes() -> tuple[str, ...]:
    """Return the suffixes of vocabulary files, those of the features last."""
    own = (tokenizer.filename_suffix for tokenizer in _TOKENIZERS)
    return (*own, *features.module_names("tokenizers"))


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Read a tokenizer's file, whose suffix names its kind.

    Args:
        path: A `.model` (SentencePiece) or `.symbols` file, or one of a feature.

    Raises:
        UserError: If the file is missing, damaged or of another kind.
    """
    suffix = Path(path).suffix
    for tokenizer in _TOKENIZERS:
        if suffix == tokenizer.filename_suffix:
            return tokenizer.load(path)
    if module := features.module_names("tokenizers").get(suffix):
        return importlib.import_module(module).load_tokenizer(path)
    suffixes = " or ".join(tokenizer_suffixes())
    raise UserError(f"received vocabulary file {path}, expected its name in {suffixes}")
