"""The words of a sequence as text."""

from __future__ import annotations

from t2t_repro.features.attention_view.attention import Span, TokenSequence
from t2t_repro.features.attention_view.byte_pieces import EOS


def spans_without_eos(sequence: TokenSequence) -> list[Span]:
    """Return the spans of the words, except EOS."""
    return [span for span in sequence.words if sequence.tokens[span[0]] != EOS]


def comparable(word: str) -> str:
    """Return a word in lower case and without punctuation around it."""
    return word.lower().strip(".,;:!?\"'()") or word
