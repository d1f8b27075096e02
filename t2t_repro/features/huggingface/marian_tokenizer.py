"""The tokenizer of a MarianMT model: SentencePiece, and a vocabulary with other ids.

Source: `MarianTokenizer` of Hugging Face's Transformers 5.24. SentencePiece splits a
text, and `vocab.json` gives the ids of the pieces. Other pieces are unknown. A
text may begin with the code of a language, such as `>>fra<<`, which is one entry.

Here padding is 0, the end of a sentence 1 and unknown 2; the other entries follow in
their order. Differs from `MarianTokenizer`: `</s>`, `<pad>` and `<unk>` in a text are
text.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sentencepiece

from t2t_repro.constants import UNK_ID
from t2t_repro.errors import UserError
from t2t_repro.files import description_text, parse_json
from t2t_repro.text.sampled_subwords import SPACE
from t2t_repro.text.subwords import sanitize, word_spans_of
from t2t_repro.text.tokenizer import Tokenizer, ids_of_text, read_vocabulary_file

if TYPE_CHECKING:
    from t2t_repro.text.in_graph import InGraphTokenizer

UNKNOWN = "<unk>"
_FORMAT = 1
_CODE = re.compile("(?s)(>>.*?<<)(.*)")


@dataclasses.dataclass(frozen=True)
class MarianVocabulary:
    """The entries of a `vocab.json`.

    Attributes:
        entries: The entry of each id of Marian.
        pad: Marian's id of padding.
        eos: Marian's id of the end of a sentence.
        unk: Marian's id of unknown pieces.
    """

    entries: tuple[str, ...]
    pad: int
    eos: int
    unk: int

    @classmethod
    def from_ids(
        cls, ids: Mapping[str, Any], pad: int, eos: int, name: str
    ) -> MarianVocabulary:
        """Read the content of a `vocab.json`.

        Args:
            ids: The id of each entry.
            pad: Id of padding.
            eos: Id of the end of a sentence.
            name: Name of the file, for messages.

        Raises:
            UserError: If the ids are not 0, 1, 2, ..., each once, or a special entry
                is missing.
        """
        by_id: dict[int, str] = {}
        for entry, number in ids.items():
            if entry.encode("utf-8", "replace").decode() != entry:
                raise UserError(
                    f"received {name} with the entry {entry!a:.99}, expected text"
                )
            if type(number) is not int or not 0 <= number < len(ids):
                raise UserError(
                    f"received {name} with id {number!r} of {entry!r}, expected a "
                    f"number from 0 to {len(ids) - 1}: it has {len(ids)} entries"
                )
            if number in by_id:
                raise UserError(
                    f"received {name} with id {number} of both {by_id[number]!r} and "
                    f"{entry!r}, expected a different id for each entry"
                )
            by_id[number] = entry
        if UNKNOWN not in ids:
            raise UserError(f"received {name} without {UNKNOWN}, expected its id")
        found = cls(
            tuple(by_id[number] for number in range(len(ids))), pad, eos, ids[UNKNOWN]
        )
        found.check(name)
        return found

    def check(self, name: str) -> None:
        """Refuse special ids that are no ids, or not three different ones.

        Raises:
            UserError: If they are refused.
        """
        special = (self.pad, self.eos, self.unk)
        size = len(self.entries)
        if len(set(special)) < 3 or not all(
            type(token) is int and 0 <= token < size for token in special
        ):
            raise UserError(
                f"received {name} of {size} entries with the ids {special} of padding, "
                f"end and unknown, expected three different ids below {size}"
            )

    @functools.cached_property
    def order(self) -> list[int]:
        """Marian's id of each of our ids: padding, end, unknown, and the others."""
        special = [self.pad, self.eos, self.unk]
        others = (token for token in range(len(self.entries)) if token not in special)
        return [*special, *others]


class MarianTokenizer(Tokenizer):
    """One side of a MarianMT model's tokenizer.

    Args:
        vocabulary: Its entries.
        spm: Content of the side's SentencePiece model.
        name: Name of the model's file, for messages.

    Raises:
        UserError: If it is no SentencePiece model.
    """

    filename_suffix = ".marian"

    def __init__(
        self,
        vocabulary: MarianVocabulary,
        spm: bytes,
        name: str = "given as bytes",
    ) -> None:
        try:
            self._processor = sentencepiece.SentencePieceProcessor()
            self._processor.LoadFromSerializedProto(spm)
        except RuntimeError as error:
            raise UserError(
                f"received {name}, expected a SentencePiece model: it is damaged or "
                "something else"
            ) from error
        self.vocabulary = vocabulary
        self.spm = spm
        self.entries = tuple(vocabulary.entries[token] for token in vocabulary.order)
        self.vocab_size = len(self.entries)
        self._ids = {entry: token for token, entry in enumerate(self.entries)}

    @classmethod
    def load(cls, path: str | Path) -> MarianTokenizer:
        try:
            values = parse_json(read_vocabulary_file(path))
            if values["format"] != _FORMAT:
                raise ValueError(f"format {values['format']}")
            entries = tuple(values["entries"])
            if len(set(entries)) < len(entries) or not all(
                type(entry) is str for entry in entries
            ):
                raise ValueError("entries that are not different texts")
            vocabulary = MarianVocabulary(
                entries, values["pad"], values["eos"], values["unk"]
            )
            spm = base64.b64decode(values["spm"], validate=True)
        except (ValueError, KeyError, TypeError, binascii.Error) as error:
            raise UserError(
                f"received vocabulary file {path}, expected the tokenizer of a "
                "MarianMT model: it is damaged or something else"
            ) from error
        vocabulary.check(str(path))
        return cls(vocabulary, spm, str(path))

    def to_bytes(self) -> bytes:
        values = dataclasses.asdict(self.vocabulary) | {
            "spm": base64.b64encode(self.spm).decode(),
            "format": _FORMAT,
        }
        return description_text(values).encode()

    def same_ids(self, other: Tokenizer) -> bool:
        """Return whether both have one vocabulary; their SentencePieces may differ."""
        return (
            isinstance(other, MarianTokenizer) and other.vocabulary == self.vocabulary
        )

    def encode(self, text: str) -> list[int]:
        text = sanitize(text)
        code, rest = split_code(text)
        pieces = [*code, *self._processor.encode(rest, out_type=str)]
        return [self._ids.get(piece, UNK_ID) for piece in pieces]

    def decode(self, ids: Sequence[int]) -> str:
        known = (token for token in ids_of_text(ids) if token != UNK_ID)
        text = self._processor.decode_pieces([self.entries[token] for token in known])
        return text.replace(SPACE, " ").strip()

    def word_spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return the spans of words, which begin at a piece with a space before it."""
        return word_spans_of(ids, self.pieces(ids))

    def word_starts(self) -> tuple[int, ...]:
        """Return the ids of the pieces with a space before them, ascending."""
        entries = enumerate(self.entries)
        return tuple(token for token, entry in entries if entry.startswith(SPACE))

    def in_graph(self) -> InGraphTokenizer:
        from t2t_repro.features.huggingface.marian_graph import InGraphMarian

        return InGraphMarian(self.entries, self.spm)


def split_code(text: str) -> tuple[list[str], str]:
    """Split a text into the code of a language, if it begins with one, and the rest."""
    found = _CODE.fullmatch(text)
    return ([], text) if found is None else ([found[1]], found[2])


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Read the file of a `MarianTokenizer`; see `text.load_tokenizer`.

    Raises:
        UserError: If the file is missing or damaged.
    """
    return MarianTokenizer.load(path)
