"""tensor2tensor's text encoders in a package, whose ids are computed afterwards.

A package may choose the vocabulary of each side in `generate_encoded_samples`. The
encoders here keep the text instead of its ids, and remember their vocabulary.

Source: tensor2tensor 1.15.7, data_generators/text_encoder.py and generator_utils.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.package_refusals import refused
from t2t_repro.features.tensor2tensor.package_texts import lines_for_vocab
from t2t_repro.text import Tokenizer

PAD, EOS = "<pad>", "<EOS>"
RESERVED_TOKENS = [PAD, EOS]


def to_unicode(text: str | bytes, ignore_errors: bool = False) -> str:
    """Return a text as a string."""
    errors = "ignore" if ignore_errors else "strict"
    return text if isinstance(text, str) else text.decode("utf-8", errors)


class DeferredIds:
    """The ids of a text, of which only the end of sentence is known.

    Args:
        text: The text.
        encoder: Encoder of the text.
    """

    def __init__(self, text: str, encoder: TextEncoder) -> None:
        self.text = text
        self.encoder = encoder

    def append(self, token: int) -> None:
        """Accept the end of sentence, which is appended anyway."""
        self.extend([token])

    def extend(self, tokens: Iterable[int]) -> None:
        """Accept the end of sentence, which is appended anyway."""
        if [*tokens] != [EOS_ID]:
            self._refuse()

    def __add__(self, tokens: Iterable[int]) -> DeferredIds:
        self.extend(tokens)
        return self

    def _refuse(self, *_: object) -> NoReturn:
        raise refused(
            "working with the ids of a text",
            "change or leave out texts in `generate_samples`, before they are encoded",
        )

    __len__ = __iter__ = __getitem__ = _refuse


class TextEncoder:
    """An encoder of text.

    Attributes:
        filename: File of its vocabulary, or None.
    """

    filename: str | None = None

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer with the same ids.

        Raises:
            UserError: If there is none.
        """
        raise refused(f"text_encoder.{type(self).__name__}")

    def encode(self, text: str | bytes) -> Any:
        """Return the ids of a text."""
        return DeferredIds(to_unicode(text), self)

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        return self.tokenizer().vocab_size


class ByteTextEncoder(TextEncoder):
    """The bytes of UTF-8, which tensor2tensor calls characters."""

    def tokenizer(self) -> Tokenizer:
        from t2t_repro.features.tensor2tensor.token_encoders import ByteTokenizer

        return ByteTokenizer()


class SubwordTextEncoder(TextEncoder):
    """A vocabulary of subwords, from a file `vocab.*.subwords`."""

    def __init__(self, filename: str | None = None) -> None:
        self.filename = filename

    @classmethod
    def build_from_generator(
        cls,
        generator: Iterable[str],
        target_size: int,
        max_subtoken_length: int | None = None,
        reserved_tokens: Sequence[str] | None = None,
    ) -> LearnedEncoder:
        """Return a vocabulary that is learned from lines of text."""
        del max_subtoken_length
        return LearnedEncoder(None, generator, target_size, reserved_tokens)

    def tokenizer(self) -> Tokenizer:
        from t2t_repro.features.tensor2tensor.subword_encoder import SubwordTokenizer

        return SubwordTokenizer.load(str(self.filename))


class LearnedEncoder(SubwordTextEncoder):
    """A vocabulary of subwords that is learned here, by SentencePiece.

    Args:
        filename: Name of the file that tensor2tensor would write.
        lines: Text that it is learned from.
        size: Approximate number of ids.
        reserved_tokens: Special tokens, each with an id.

    Raises:
        UserError: If there are reserved tokens besides tensor2tensor's own.
    """

    def __init__(
        self,
        filename: str | None,
        lines: Iterable[str],
        size: int,
        reserved_tokens: Sequence[str] | None,
    ) -> None:
        super().__init__(filename)
        self.lines = lines
        self.size = size
        if reserved_tokens and [*reserved_tokens] != RESERVED_TOKENS:
            raise refused(
                f"a new vocabulary with the reserved tokens {reserved_tokens[2:]}",
                f"put tensor2tensor's own file {filename or ''} into data_dir",
            )

    def tokenizer(self) -> Tokenizer:
        raise refused("a vocabulary before it is learned", "use it after `t2t datagen`")


class TokenTextEncoder(TextEncoder):
    """A vocabulary of tokens with spaces between them, from a file or a list."""

    def __init__(
        self,
        vocab_filename: str | None,
        reverse: bool = False,
        vocab_list: Sequence[str] | None = None,
        replace_oov: str | None = None,
        num_reserved_ids: int = len(RESERVED_TOKENS),
    ) -> None:
        if reverse or num_reserved_ids != len(RESERVED_TOKENS):
            raise refused("TokenTextEncoder with `reverse` or `num_reserved_ids`")
        self.filename = vocab_filename
        self.replace_oov = replace_oov
        self._tokens = [*RESERVED_TOKENS, *(vocab_list or ())]

    def store_to_file(self, filename: str) -> None:
        """Write the vocabulary, one token per line."""
        Path(filename).write_bytes(self._content())

    def _content(self) -> bytes:
        if self.filename:
            return Path(self.filename).read_bytes()
        return "".join(f"{token}\n" for token in self._tokens).encode()

    def tokenizer(self) -> Tokenizer:
        from t2t_repro.features.tensor2tensor.token_encoders import TokenTokenizer

        tokenizer = TokenTokenizer(self._content(), str(self.filename))
        (unknown,) = tokenizer.pieces([tokenizer.unknown_id or 0])
        if self.replace_oov not in (None, unknown):
            raise UserError(
                f"received oov_token {self.replace_oov!r} for {self.filename}, "
                f"expected {unknown!r}, which the file has for unknown words, too"
            )
        return tokenizer


def get_or_generate_vocab_inner(
    data_dir: str | None,
    vocab_filename: str | None,
    vocab_size: int,
    generator: Iterable[str],
    max_subtoken_length: int | None = None,
    reserved_tokens: Sequence[str] | None = None,
) -> SubwordTextEncoder:
    """Return tensor2tensor's vocabulary if its file is there, or learn one."""
    del max_subtoken_length
    path = os.path.join(data_dir or "", vocab_filename or "")
    if os.path.isfile(path):
        return SubwordTextEncoder(path)
    return LearnedEncoder(path, generator, vocab_size, reserved_tokens)


def get_or_generate_vocab(
    data_dir: str | None,
    tmp_dir: str,
    vocab_filename: str,
    vocab_size: int,
    sources: Sequence[Any],
    file_byte_budget: float = 1e6,
    max_subtoken_length: int | None = None,
) -> SubwordTextEncoder:
    """Return the vocabulary of the files of some corpora."""
    lines = lines_for_vocab(tmp_dir, sources, file_byte_budget)
    return get_or_generate_vocab_inner(
        data_dir, vocab_filename, vocab_size, lines, max_subtoken_length
    )


MEMBERS: dict[str, Any] = {
    **{"PAD": PAD, "EOS": EOS, "PAD_ID": PAD_ID, "EOS_ID": EOS_ID},
    **{"RESERVED_TOKENS": RESERVED_TOKENS, "NUM_RESERVED_TOKENS": 2},
    **{"to_unicode": to_unicode, "native_to_unicode": to_unicode},
    "to_unicode_utf8": to_unicode,
    "to_unicode_ignore_errors": lambda text: to_unicode(text, ignore_errors=True),
    "unicode_to_native": to_unicode,
    "is_unicode": lambda text: isinstance(text, str),
    "TextEncoder": TextEncoder,
    "ByteTextEncoder": ByteTextEncoder,
    "SubwordTextEncoder": SubwordTextEncoder,
    "TokenTextEncoder": TokenTextEncoder,
}
