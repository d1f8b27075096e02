"""tensor2tensor's vocabularies of whole tokens and of bytes.

Source: tensor2tensor 1.15.7, data_generators/text_encoder.py (`TokenTextEncoder` and
`ByteTextEncoder`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.subword_encoder import (
    SubwordTokenizer,
    check_special_entries,
)
from t2t_repro.text.lines import is_blank
from t2t_repro.text.tokenizer import Tokenizer, ids_of_text, read_vocabulary_file

if TYPE_CHECKING:
    from t2t_repro.text.in_graph import InGraphTokenizer

_SPECIAL = (("<pad>", "<PAD>"), ("<EOS>", "<eos>", "</s>"))
# Usual names of the token for unknown words, which the file does not mark.
_UNKNOWN = ("UNK", "<UNK>", "<unk>")
_RESERVED = ("<pad>", "<EOS>")


class TokenTokenizer(Tokenizer):
    """A vocabulary file `vocab.*.tokens` of tensor2tensor: one token per line.

    Tokens have white space between them. A token that is not in the vocabulary becomes
    its `UNK`, `<UNK>` or `<unk>`.

    Args:
        content: Content of the file.
        name: Name of the file, for messages.

    Raises:
        UserError: If it is no such file, or has no entry for unknown tokens.
    """

    filename_suffix = ".tokens"

    def __init__(self, content: bytes, name: str = "given as bytes") -> None:
        self._content = content
        lines = content.decode("utf-8", "replace").removesuffix("\n").split("\n")
        self.entries = tuple(line.strip() for line in lines)
        check_special_entries(self.entries, _SPECIAL, name)
        self.vocab_size = len(self.entries)
        # Of equal tokens, the last one counts.
        self._ids = {entry: token for token, entry in enumerate(self.entries)}
        unknown = next((token for token in _UNKNOWN if token in self._ids), None)
        if unknown is None:
            raise UserError(
                f"received vocabulary file {name} without a token for unknown words, "
                f"expected {', '.join(_UNKNOWN)}: rename the one that it has"
            )
        self.unknown_id = self._unknown = self._ids[unknown]

    @classmethod
    def load(cls, path: str | Path) -> TokenTokenizer:
        return cls(read_vocabulary_file(path), str(path))

    def to_bytes(self) -> bytes:
        return self._content

    def encode(self, text: str) -> list[int]:
        words = [] if is_blank(text) else text.split()
        return [self._ids.get(word, self._unknown) for word in words]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.pieces(ids_of_text(ids)))

    def in_graph(self) -> InGraphTokenizer:
        from t2t_repro.features.tensor2tensor.token_graph import InGraphTokens

        return InGraphTokens(self.entries, self._ids, self._unknown)


def _byte_entry(byte: int) -> str:
    """Return a byte as text: a visible character of ASCII, or its number."""
    return chr(byte) if 0x20 < byte < 0x7F else f"<0x{byte:02X}>"


class ByteTokenizer(Tokenizer):
    """The bytes of UTF-8, whose ids begin at 2: tensor2tensor's characters."""

    filename_suffix = ".bytes"
    unknown_id = None
    entries = (*_RESERVED, *map(_byte_entry, range(256)))
    vocab_size = len(entries)
    _FILE = b"tensor2tensor's ByteTextEncoder: the id of a byte is its value + 2\n"
    _SPACE = len(_RESERVED) + ord(" ")

    @classmethod
    def load(cls, path: str | Path) -> ByteTokenizer:
        if read_vocabulary_file(path) != cls._FILE:
            raise UserError(
                f"received vocabulary file {path}, expected the line of a byte "
                "vocabulary: it is damaged or something else"
            )
        return cls()

    def to_bytes(self) -> bytes:
        return self._FILE

    def encode(self, text: str) -> list[int]:
        content = b"" if is_blank(text) else text.encode("utf-8", "replace")
        return [byte + len(_RESERVED) for byte in content]

    def decode(self, ids: Sequence[int]) -> str:
        content = bytes(token - len(_RESERVED) for token in ids_of_text(ids))
        return content.decode("utf-8", "replace")

    def word_spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return the spans of words, each with the spaces before it."""
        special = (PAD_ID, EOS_ID)
        starts = [
            index
            for index, token in enumerate(ids)
            if index == 0
            or token in special
            or ids[index - 1] in special
            or (token == self._SPACE and ids[index - 1] != self._SPACE)
        ]
        return list(zip(starts, [*starts[1:], len(ids)], strict=True))

    def word_starts(self) -> tuple[int, ...]:
        """Return the id of the space, which begins a word."""
        return (self._SPACE,)

    def in_graph(self) -> InGraphTokenizer:
        from t2t_repro.features.tensor2tensor.token_graph import InGraphBytes

        return InGraphBytes(self.entries, self._SPACE)


_KINDS = (SubwordTokenizer, TokenTokenizer, ByteTokenizer)


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Read a vocabulary file by its suffix; see `text.load_tokenizer`.

    Raises:
        UserError: If the file is missing or damaged.
    """
    kinds = {kind.filename_suffix: kind for kind in _KINDS}
    return kinds[Path(path).suffix].load(path)
