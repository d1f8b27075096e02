"""tensor2tensor's subwords, its `SubwordTextEncoder`.

A text is split where letters or numbers begin or end. A single space between two tokens
is dropped. Characters outside the vocabulary's alphabet are written as numbers, and "_"
ends every token. Then the longest subword is taken again and again. The first two ids
are padding and the end of sentence. No id is unknown, because every character has a
number.

Source: tensor2tensor 1.15.7, data_generators/text_encoder.py and tokenizer.py.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.errors import UserError
from t2t_repro.text.lines import is_blank
from t2t_repro.text.tokenizer import Tokenizer, ids_of_text, read_vocabulary_file

if TYPE_CHECKING:
    from t2t_repro.text.in_graph import InGraphTokenizer

# The two special entries, with and without the end of a token; older files leave it
# out.
_SPECIAL = (("<pad>_", "<pad>"), ("<EOS>_", "<EOS>"))
# Characters that escaped tokens consist of beside those of the alphabet.
_ESCAPES = frozenset("\\_u;0123456789")
# Letters and numbers, or all else. In Python, `\w` is a letter, a number or "_".
_RUNS = re.compile(r"[^\W_]+|[\W_]+")
_ESCAPED = re.compile(r"\\u|\\\\|\\([0-9]+);")
# What tensor2tensor writes for a number that is no character.
INVALID = "\u3013"
_DIGITS = 7  # of the largest character
_CACHED_TOKENS = 2**20


class SubwordTokenizer(Tokenizer):
    """A vocabulary file `vocab.*.subwords` of tensor2tensor.

    Differs from tensor2tensor: a text in which nothing is visible has no ids.

    Args:
        content: Content of the file.
        name: Name of the file, for messages.

    Raises:
        UserError: If it is no such file.
    """

    filename_suffix = ".subwords"
    unknown_id = None

    def __init__(self, content: bytes, name: str = "given as bytes") -> None:
        self._content = content
        self.entries = _entries_of(content, name)
        self.vocab_size = len(self.entries)
        # Of equal entries, the last one counts.
        self._ids = {entry: token for token, entry in enumerate(self.entries) if entry}
        self.alphabet = frozenset("".join(self.entries)) | _ESCAPES
        _check_spells_all(self._ids, self.alphabet, name)
        self._longest = max(map(len, self.entries))
        self._ids_of_token = functools.lru_cache(_CACHED_TOKENS)(self._split_token)

    @classmethod
    def load(cls, path: str | Path) -> SubwordTokenizer:
        return cls(read_vocabulary_file(path), str(path))

    def padded(self, vocab_size: int) -> SubwordTokenizer:
        """Return the same subwords with further ids, which no text has.

        tensor2tensor's hparam `vocab_divisor` adds such rows to a model's embedding.

        Args:
            vocab_size: Number of ids, not below that of this tokenizer.
        """
        # The last line of a file need not end.
        content = self._content.removesuffix(b"\n") + b"\n"
        return SubwordTokenizer(content + b"''\n" * (vocab_size - self.vocab_size))

    def to_bytes(self) -> bytes:
        return self._content

    def encode(self, text: str) -> list[int]:
        if is_blank(text):
            return []
        return [token for run in _tokens(text) for token in self._ids_of_token(run)]

    def _split_token(self, token: str) -> tuple[int, ...]:
        """Return the ids of the longest subwords, from left to right."""
        escaped, found, start = self._escape(token), [], 0
        while start < len(escaped):
            end = min(len(escaped), start + self._longest)
            while escaped[start:end] not in self._ids:
                end -= 1
            found.append(self._ids[escaped[start:end]])
            start = end
        return tuple(found)

    def _escape(self, token: str) -> str:
        # U+FFFF stands for NUL in the graph, which TensorFlow Text ends a text at.
        safe = token.replace("\uffff", "\0").replace("\\", "\\\\").replace("_", "\\u")
        return "".join(map(self._escape_character, safe)) + "_"

    def _escape_character(self, character: str) -> str:
        is_spelt = character in self.alphabet and character != "\n"
        return character if is_spelt else f"\\{ord(character)};"

    def decode(self, ids: Sequence[int]) -> str:
        text = "".join(self.entries[token] for token in ids_of_text(ids))
        tokens = [_unescape(token) for token in text.split("_") if token]
        return "".join(_with_spaces(filter(None, tokens)))

    def word_spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return the spans of words; see `Tokenizer`.

        A word begins at a token with a space before it, or at the start of it. Padding
        and the end of sentence are not part of a word.
        """
        starts, before = [], ""
        for start, end in self._token_spans(ids):
            special = ids[start] in (PAD_ID, EOS_ID)
            escaped = "" if special else "".join(self.pieces(ids[start:end]))
            text = _unescape(escaped.removesuffix("_"))
            meeting = before[-1:] + text[:1]
            if len(meeting) < 2 or " " in meeting or meeting.isalnum():
                starts.append(start)
            before = text
        return [*itertools.pairwise([*starts, len(ids)])] if len(ids) else []

    def _token_spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return the spans of tokens; padding and EOS are separate tokens."""
        special = [token in (PAD_ID, EOS_ID) for token in ids]
        ends = [piece.endswith("_") for piece in self.pieces(ids)]
        starts = [
            index
            for index in range(len(ids))
            if special[index] or index == 0 or special[index - 1] or ends[index - 1]
        ]
        return [*itertools.pairwise([*starts, len(ids)])]

    def word_starts(self) -> tuple[int, ...]:
        """Refuse to tell: a subword of this kind begins a word after another's end.

        Raises:
            UserError: Always.
        """
        raise UserError(
            "received a vocabulary of tensor2tensor with settings that count words, "
            "which only the subwords of SentencePiece allow: prepare the text with one "
            "of those."
        )

    def in_graph(self) -> InGraphTokenizer:
        from t2t_repro.features.tensor2tensor.subword_graph import InGraphSubwords

        return InGraphSubwords(self.entries, self._ids, self.alphabet, ord(INVALID))


def _entries_of(content: bytes, name: str) -> tuple[str, ...]:
    """Return the entries of a file, one per line, with or without quotes around."""
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(
            f"received vocabulary file {name}, expected UTF-8: it is damaged or "
            "something else"
        ) from error
    if not lines[-1]:
        del lines[-1]
    entries = tuple(map(_unquoted, lines))
    check_special_entries(entries, _SPECIAL, name)
    return entries


def check_special_entries(
    entries: Sequence[str], special: Sequence[Sequence[str]], name: str
) -> None:
    """Refuse a vocabulary whose first two ids are not padding and end of sentence.

    Args:
        entries: Entries of the vocabulary.
        special: The accepted names of each special entry, the usual one first.
        name: Name of the file, for messages.

    Raises:
        UserError: If an entry has another name.
    """
    found = [*entries[: len(special)]]
    if len(found) < len(special) or any(map(_is_other, found, special)):
        usual = " and ".join(repr(names[0]) for names in special)
        raise UserError(
            f"received vocabulary file {name}, which begins with {found!r:.99}, "
            f"expected a vocabulary of tensor2tensor, which begins with {usual}: the "
            "ids of padding and of the end of a sentence"
        )


def _is_other(entry: str, names: Sequence[str]) -> bool:
    return entry not in names


def _unquoted(line: str) -> str:
    entry = line.rstrip()
    quoted = len(entry) > 1 and entry[0] == entry[-1] and entry[0] in "'\""
    return entry[1:-1] if quoted else entry


def _check_spells_all(ids: dict[str, int], alphabet: Iterable[str], name: str) -> None:
    """Refuse a vocabulary in which a character of its alphabet has no entry."""
    missing = sorted(set(alphabet) - ids.keys())
    if missing:
        raise UserError(
            f"received vocabulary file {name} without an entry for {missing[0]!r}, "
            "expected one for every character: it is damaged or something else"
        )


def _tokens(text: str) -> Iterator[str]:
    """Split a text into runs of letters and numbers, and of all else."""
    for run in _RUNS.finditer(text):
        inside = run.start() > 0 and run.end() < len(text)
        if run.group() != " " or not inside:
            yield run.group()


def _unescape(token: str) -> str:
    return _ESCAPED.sub(_unescape_match, token)


def _unescape_match(match: re.Match[str]) -> str:
    if match.group(1) is None:
        return "_" if match.group() == "\\u" else "\\"
    digits = match.group(1).lstrip("0") or "0"
    code = int(digits) if len(digits) <= _DIGITS else sys.maxunicode + 1
    is_character = code <= sys.maxunicode and not 0xD800 <= code <= 0xDFFF
    return chr(code) if is_character else INVALID


def _with_spaces(tokens: Iterable[str]) -> Iterator[str]:
    """Put a space between two tokens that both begin with a letter or number."""
    after_word = False
    for token in tokens:
        is_word = token[0].isalnum()
        if after_word and is_word:
            yield " "
        yield token
        after_word = is_word
