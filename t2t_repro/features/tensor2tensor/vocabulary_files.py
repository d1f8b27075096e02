"""Find the vocabulary files of a model in a data folder of tensor2tensor.

A model's symbol tables have one row per entry of the vocabulary, so a file fits or does
not. The name of the problem decides between several.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.errors import UserError
from t2t_repro.features.tensor2tensor.subword_encoder import SubwordTokenizer
from t2t_repro.features.tensor2tensor.token_encoders import (
    ByteTokenizer,
    TokenTokenizer,
)
from t2t_repro.files import matching
from t2t_repro.text import Tokenizer
from t2t_repro.text.tokenizer import read_vocabulary_file

_MAX_FILES = 200


@dataclasses.dataclass(frozen=True)
class Vocabularies:
    """The tokenizers of a model.

    Attributes:
        tokenizers: Tokenizers of the inputs and of the targets; one object twice if
            both sides share one.
        names: Where each comes from, for messages; one if they share it.
    """

    tokenizers: tuple[Tokenizer, Tokenizer]
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Vocabulary:
    """A vocabulary and its origin.

    Attributes:
        tokenizer: The tokenizer.
        name: Path of its file, for messages.
    """

    tokenizer: Tokenizer
    name: str

    def padded(self, rows: int, divisor: int) -> Tokenizer | None:
        """Return the tokenizer of a table of so many rows, or None if it has others.

        tensor2tensor adds rows until `vocab_divisor` divides their number.
        """
        tokenizer = self.tokenizer
        size = tokenizer.vocab_size
        if size == rows:
            return tokenizer
        is_padded = size + -size % divisor == rows
        if is_padded and isinstance(tokenizer, SubwordTokenizer):
            return tokenizer.padded(rows)
        return None


def given_vocabularies(
    source_vocab: str | Path,
    target_vocab: str | Path | None,
    rows: tuple[int, int],
    divisor: int,
) -> Vocabularies:
    """Read the files that the user names.

    Args:
        source_vocab: File of the inputs.
        target_vocab: File of the targets; None if both sides share one.
        rows: Number of rows of the source and of the target table.
        divisor: tensor2tensor's `vocab_divisor`.

    Raises:
        UserError: If a file is damaged, or its size is not that of the table.
    """
    paths = (source_vocab, source_vocab if target_vocab is None else target_vocab)
    found = [_load(Path(path)) for path in paths]
    source, target = (
        _fitting(own, n, divisor) for own, n in zip(found, rows, strict=True)
    )
    names = tuple(vocabulary.name for vocabulary in found)
    if source.to_bytes() == target.to_bytes():
        return Vocabularies((source, source), names[:1])
    return Vocabularies((source, target), names)


def _fitting(vocabulary: _Vocabulary, rows: int, divisor: int) -> Tokenizer:
    tokenizer = vocabulary.padded(rows, divisor)
    if tokenizer is None:
        raise UserError(
            f"received vocabulary {vocabulary.name} with "
            f"{vocabulary.tokenizer.vocab_size:,} entries, expected {rows:,}, the rows "
            f"of the model's table{_divided(divisor)}: it is the one of another model."
        )
    return tokenizer


def _divided(divisor: int) -> str:
    return f" (a multiple of vocab_divisor={divisor})" if divisor > 1 else ""


def find_vocabularies(
    folders: Sequence[Path], problem: str | None, rows: tuple[int, int], divisor: int
) -> Vocabularies:
    """Find the vocabulary files that fit a model.

    Args:
        folders: Folders to look in, the likelier first.
        problem: Name of the model's problem, or None.
        rows: Number of rows of the source and of the target table. If they are equal,
            one vocabulary is for both sides.
        divisor: tensor2tensor's `vocab_divisor`.

    Raises:
        UserError: If none fits, or several do; the message has the sizes.
    """
    found = [vocabulary for folder in folders for vocabulary in _read(folder)]
    if rows[0] == rows[1]:
        name, tokenizer = _choose(found, problem, rows[0], divisor, folders)
        return Vocabularies((tokenizer, tokenizer), (name,))
    chosen = [_choose(found, problem, n, divisor, folders) for n in rows]
    names = tuple(name for name, _ in chosen)
    return Vocabularies((chosen[0][1], chosen[1][1]), names)


def _read(folder: Path) -> list[_Vocabulary]:
    """Read the vocabulary files of a folder; what is none does not count."""
    paths = sorted(p for p in matching(folder, "vocab.*") if p.is_file())[:_MAX_FILES]
    found = []
    for path in paths:
        try:
            found.append(_load(path))
        except UserError:
            continue
    return found


def _load(path: Path) -> _Vocabulary:
    """Read a vocabulary file; a language may follow its suffix.

    Raises:
        UserError: If it is too large, damaged or something else.
    """
    content = read_vocabulary_file(path)
    # Early versions name no kind; subwords have quotes around them.
    is_quoted = content.startswith((b"'", b'"'))
    is_tokens = ".tokens" in path.name or not (".subwords" in path.name or is_quoted)
    kind = TokenTokenizer if is_tokens else SubwordTokenizer
    return _Vocabulary(kind(content, str(path)), str(path))


def _choose(
    found: Sequence[_Vocabulary],
    problem: str | None,
    rows: int,
    divisor: int,
    folders: Sequence[Path],
) -> tuple[str, Tokenizer]:
    """Return the vocabulary of a table of so many rows, and its name."""
    fitting = {
        vocabulary.name: tokenizer
        for vocabulary in found
        if (tokenizer := vocabulary.padded(rows, divisor)) is not None
    }
    base = (problem or "").removesuffix("_rev")
    named = {
        name: tokenizer
        for name, tokenizer in fitting.items()
        if base and f".{base}." in Path(name).name
    }
    chosen = named or fitting
    if not chosen and rows == ByteTokenizer.vocab_size:
        return "the bytes of UTF-8", ByteTokenizer()
    contents = {tokenizer.to_bytes() for tokenizer in chosen.values()}
    if len(contents) == 1:
        return next(iter(chosen.items()))
    raise UserError(_trouble(found, sorted(chosen), rows, divisor, folders))


def _trouble(
    found: Sequence[_Vocabulary],
    fitting: Sequence[str],
    rows: int,
    divisor: int,
    folders: Sequence[Path],
) -> str:
    """Return the message for no file, or several files, of a size."""
    wanted = f"a vocabulary of {rows:,} entries{_divided(divisor)}, as the model has"
    advice = "give the file as source_vocab (and target_vocab)."
    if fitting:
        return (
            f"received {', '.join(fitting)}, expected one file with {wanted}: {advice}"
        )
    sizes = ", ".join(f"{v.name} ({v.tokenizer.vocab_size:,})" for v in found[:5])
    places = " and ".join(map(str, folders)) or "no data_dir"
    received = f"{places}, whose files have other sizes: {sizes}" if sizes else places
    if not sizes:
        received += " without a file vocab.*"
    return f"received {received}, expected {wanted}: give its data_dir, or {advice}"
