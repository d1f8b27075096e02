"""Readable text of SentencePiece's pieces, with bytes joined into characters.

A character outside the vocabulary is spelt in the bytes of its UTF-8, one piece per
byte: "日" is "<0xE6>", "<0x97>", "<0xA5>". Bytes that form no character stay as they
are written, and so do control characters, which cannot be seen.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable

from t2t_repro.text.tokenizer import SPECIAL_SYMBOLS

EOS = SPECIAL_SYMBOLS[1]
EOS_SIGN = "<EOS>"  # how pages and figures write EOS, as the paper's figures do
_SPACE = "\u2581"  # how SentencePiece writes a space
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_NO_CHARACTER = range(0xDC80, 0xDD00)  # where "surrogateescape" puts other bytes


def with_eos_sign(pieces: Iterable[str]) -> list[str]:
    """Return pieces with EOS as "<EOS>"."""
    return [EOS_SIGN if piece == EOS else piece for piece in pieces]


def word_text(pieces: Iterable[str]) -> str:
    """Return the text of a word, without spaces around it.

    Args:
        pieces: Vocabulary entries, such as "▁Hor" and "se".

    Returns:
        The text, or the pieces in a row if they are nothing but spaces.
    """
    text = join_bytes(pieces)
    return text.replace(_SPACE, " ").strip() or text


def join_bytes(pieces: Iterable[str]) -> str:
    """Return pieces in a row; bytes that form characters become these characters."""
    runs = itertools.groupby(pieces, key=_is_byte)
    return "".join(
        _characters(run) if is_byte else "".join(run) for is_byte, run in runs
    )


def _is_byte(piece: str) -> bool:
    return _BYTE.fullmatch(piece) is not None


def _characters(pieces: Iterable[str]) -> str:
    content = bytes.fromhex("".join(_BYTE.sub(r"\1", piece) for piece in pieces))
    return "".join(map(_visible, content.decode("utf-8", "surrogateescape")))


def _visible(character: str) -> str:
    code = ord(character)
    if code in _NO_CHARACTER:
        return f"<0x{code - 0xDC00:02X}>"
    if unicodedata.category(character) == "Cc":
        return "".join(f"<0x{byte:02X}>" for byte in character.encode())
    return character
