"""The interface of all tokenizers, and a vocabulary of given symbols.

`in_graph.py` has their TensorFlow operations.
"""

from __future__ import annotations

import abc
import errno
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from t2t_repro.constants import EOS_ID, PAD_ID, UNK_ID
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write
from t2t_repro.text.lines import is_blank

if TYPE_CHECKING:
    from t2t_repro.text.in_graph import InGraphTokenizer


class Tokenizer(abc.ABC):
    """Text to ids and back. Ids 0 and 1 are padding and end of sentence.

    Attributes:
        filename_suffix: Suffix of its file's name, with the dot.
        unknown_id: Id of text that is not in the vocabulary; None if all text is.
        vocab_size: Number of ids, including the special ones.
        entries: The vocabulary entry of each id, unless `pieces` finds it elsewhere.
    """

    filename_suffix: ClassVar[str]
    unknown_id: int | None = UNK_ID
    vocab_size: int
    entries: Sequence[str]

    @classmethod
    @abc.abstractmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Read the file that `save` writes.

        Raises:
            UserError: If the file is missing or damaged.
        """

    @abc.abstractmethod
    def to_bytes(self) -> bytes:
        """Return the content of the tokenizer's file."""

    @abc.abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the ids of a text without an end of sentence, [] for a blank text."""

    @abc.abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids up to the first end of sentence, without padding."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the vocabulary entry of each id, such as "▁Hund", "</s>" or "NP"."""
        return [self.entries[token] for token in ids]

    def word_spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return the half-open spans of ids that form the words of a text, in order.

        By default, every id is a word.
        """
        return [(index, index + 1) for index in range(len(ids))]

    def word_starts(self) -> tuple[int, ...]:
        """Return the ids that begin a word, ascending.

        By default, every id is a word, except padding and the end of sentence.
        """
        no_words = (PAD_ID, EOS_ID)
        return tuple(token for token in range(self.vocab_size) if token not in no_words)

    @abc.abstractmethod
    def in_graph(self) -> InGraphTokenizer:
        """Return the same mapping as TensorFlow operations. Imports TensorFlow."""

    def same_ids(self, other: Tokenizer) -> bool:
        """Return whether an id means the same here and in another tokenizer.

        Then the two can share embeddings. By default, only the same object can.
        """
        return other is self

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text; may be faster than one `encode` per text."""
        return [self.encode(text) for text in texts]

    @property
    def has_samples(self) -> bool:
        """Whether a text has several segmentations that `encode_sampled` chooses from.

        By default, a text has only one.
        """
        return False

    def encode_sampled(
        self, texts: Sequence[str], strength: float, seed: str
    ) -> list[list[int]]:
        """Return the ids of a random segmentation of each text, for training.

        All segmentations decode to the same text. Without `has_samples`, the ids are
        those of `encode`.

        Args:
            texts: The texts.
            strength: Degree of difference from the usual segmentations; its meaning
                depends on the kind of the tokenizer.
            seed: Any text. The same texts, strength and seed give the same ids in any
                process.
        """
        del strength, seed
        return [self.encode(text) for text in texts]

    def save(self, path: str | Path) -> None:
        """Write the tokenizer's file atomically."""
        atomic_write(Path(path), self.to_bytes())


def ids_of_text(ids: Iterable[int]) -> list[int]:
    """Return the ids before the first end of sentence, without padding."""
    kept = []
    for token in ids:
        if token == EOS_ID:
            break
        if token != PAD_ID:
            kept.append(int(token))
    return kept


def distinct_entries(tokenizer: Tokenizer) -> list[str]:
    """Return the vocabulary entry of each id, for programs that know ids by entries.

    If an earlier id has the same entry, the number of the id replaces it.

    Args:
        tokenizer: The tokenizer.
    """
    found: dict[str, int] = {}
    for token, entry in enumerate(tokenizer.pieces(range(tokenizer.vocab_size))):
        found[f"<id {token}>" if entry in found else entry] = token
    return list(found)


def check_in_vocabulary(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> None:
    """Refuse a target that a model cannot write.

    Args:
        tokenizer: Tokenizer of the targets.
        text: The target.
        ids: Its ids.

    Raises:
        UserError: If an id is unknown; the message names the first such word.
    """
    unknown_id = tokenizer.unknown_id
    if unknown_id not in ids:
        return
    unknown = (word for word in text.split() if unknown_id in tokenizer.encode(word))
    raise UserError(
        f"received a target with {next(unknown, text)!r}, which is not in the "
        "vocabulary of the targets: the model cannot write it."
    )


_MAX_BYTES = 64 * 2**20  # the largest real vocabularies are a few megabytes


def read_vocabulary_file(path: str | Path) -> bytes:
    """Read the bytes of a vocabulary file.

    Raises:
        UserError: If the file cannot be read, is empty or too large, or is not a
            regular file, whose end might never come.
    """
    try:
        mode = Path(path).stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with Path(path).open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {_MAX_BYTES:,} bytes")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UserError(
            f"received vocabulary file {path}, expected a readable file: {reason}"
        ) from error
    if not content:
        raise UserError(f"received vocabulary file {path}, which is empty")
    return content


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
        self.entries = entries
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
        return ("\n".join(self.entries) + "\n").encode()

    def encode(self, text: str) -> list[int]:
        words = [] if is_blank(text) else split_symbols(text)
        return [self._ids.get(word, UNK_ID) for word in words]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.pieces(ids_of_text(ids)))

    def in_graph(self) -> InGraphTokenizer:
        from t2t_repro.text.in_graph import InGraphSymbols

        return InGraphSymbols(self.entries, self._ids, UNK_ID)
