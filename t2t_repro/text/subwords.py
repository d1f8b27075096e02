"""SentencePiece subwords.

Differs from the papers, which split tokenized words by byte-pair encoding
(arXiv:1508.07909) or into word pieces: here a model is BPE or unigram
(arXiv:1808.06226) and reads raw text, also inside a TensorFlow graph.

Runs of spaces become one space; nothing else is normalized. Compatibility folding
(SentencePiece's default, NFKC) would make a system write "..." and "2" where the
references have "…" and "²", and BLEU would count them as errors. A character outside
the vocabulary is spelt in its UTF-8 bytes, so decoding returns any visible text that
was encoded.
"""

from __future__ import annotations

import functools
import io
import itertools
import logging
import random
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from t2t_repro.constants import EOS_ID, PAD_ID, UNK_ID
from t2t_repro.errors import UserError
from t2t_repro.text.lines import is_blank
from t2t_repro.text.sampled_subwords import SPACE, SubwordSampler, can_sample
from t2t_repro.text.tokenizer import Tokenizer, ids_of_text, read_vocabulary_file

if TYPE_CHECKING:
    from t2t_repro.text.in_graph import InGraphTokenizer

logger = logging.getLogger(__name__)


def load_processor(content: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    """Load a model.

    Args:
        content: Content of the model's file.
        name: Name of the model for messages.

    Raises:
        UserError: If it is not a SentencePiece model, has other special ids, or has
            spaces elsewhere than at the start of its subwords.
    """
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    except RuntimeError as error:
        raise UserError(
            f"received vocabulary file {name}, expected a SentencePiece model: "
            f"it is damaged or something else"
        ) from error
    _check_special_ids(processor, name)
    _check_spaces(content, name)
    return processor


def _check_special_ids(
    processor: sentencepiece.SentencePieceProcessor, name: str
) -> None:
    found = (processor.pad_id(), processor.eos_id(), processor.unk_id())
    if found != (PAD_ID, EOS_ID, UNK_ID):
        raise UserError(
            f"received SentencePiece model {name} with pad, eos, unk ids {found}, "
            f"expected {(PAD_ID, EOS_ID, UNK_ID)}: train it with `spm_train "
            f"--pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1 --byte_fallback`"
        )


def _check_spaces(content: bytes, name: str) -> None:
    """Refuse subwords from which words cannot be told apart."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(content)
    pieces = (piece.piece for piece in proto.pieces)
    wrong = next((piece for piece in pieces if SPACE in piece.lstrip(SPACE)), None)
    if wrong is None and proto.normalizer_spec.escape_whitespaces:
        return
    found = "escape_whitespaces=false" if wrong is None else f"the subword {wrong!r}"
    raise UserError(
        f"received SentencePiece model {name} with {found}, expected a space (U+2581) "
        "only at the start of a subword: train it without "
        "treat_whitespace_as_suffix, split_by_whitespace=false, "
        "escape_whitespaces=false and symbols with spaces"
    )


# SentencePiece writes a space as U+2581, and decodes a U+2581 of the text as a space.
# Reading it as a space from the start makes decoding exact.
_NORMALIZATION_RULES = "2581\t20\n"

# A unigram model compares sums of its pieces' scores. Equally good segmentations
# ("e" + "ee", "ee" + "e") differ only by rounding, and the package and TensorFlow's
# operation round differently. Sums of multiples of this step are exact in float32 up to
# 65,536, some ten thousand subwords, so both choose the same segmentation.
_SCORE_STEP = 2.0**-8

# The trainer ignores lines of more than 4,192 bytes, so longer ones are split. A
# character takes at most four bytes.
_LONGEST_TRAINING_LINE = 1_000

# Below 2, SentencePiece writes progress and warnings to stderr.
_ERRORS_ONLY = 2

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


def word_spans_of(ids: Sequence[int], pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Return the spans of the words of a text; see `SentencePieceTokenizer`.

    Args:
        ids: The ids of the text.
        pieces: The subword of each id, with U+2581 for a space.
    """
    starts = [
        index
        for index, (token, piece) in enumerate(zip(ids, pieces, strict=True))
        if index == 0
        or (piece.startswith(SPACE) and pieces[index - 1].strip(SPACE))
        or not {PAD_ID, EOS_ID}.isdisjoint((token, ids[index - 1]))
    ]
    return [*itertools.pairwise([*starts, len(ids)])] if len(ids) else []


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model with padding 0, end of sentence 1, unknown 2.

    Args:
        model: Content of the model, or path of its file.

    Raises:
        UserError: If the file is missing, is not a SentencePiece model, has other
            special ids, or has spaces elsewhere than at the start of its subwords.
    """

    filename_suffix = ".model"

    def __init__(self, model: bytes | str | Path) -> None:
        name = "given as bytes" if isinstance(model, bytes) else str(model)
        content = model if isinstance(model, bytes) else read_vocabulary_file(model)
        self._content = content
        self._processor = load_processor(content, name)
        self.vocab_size = self._processor.vocab_size()

    @classmethod
    def load(cls, path: str | Path) -> SentencePieceTokenizer:
        return cls(path)

    def to_bytes(self) -> bytes:
        return self._content

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(sanitize(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return self._processor.encode([sanitize(text) for text in texts])

    @functools.cached_property
    def _sampler(self) -> SubwordSampler | None:
        proto = sentencepiece_model_pb2.ModelProto.FromString(self._content)
        return SubwordSampler(self._processor, proto) if can_sample(proto) else None

    @property
    def has_samples(self) -> bool:
        """Whether the model is BPE or unigram; words and characters have no samples."""
        return self._sampler is not None

    def encode_sampled(
        self, texts: Sequence[str], strength: float, seed: str
    ) -> list[list[int]]:
        """Return the ids of a random segmentation of each text; see `Tokenizer`.

        The strength is that of `SubwordSampler.ids`.
        """
        sampler = self._sampler
        if sampler is None:
            return super().encode_sampled(texts, strength, seed)
        generator = random.Random(seed)
        return [sampler.ids(sanitize(text), strength, generator) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return self._processor.decode(ids_of_text(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._processor.id_to_piece(int(token)) for token in ids]

    def word_spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return the spans of words; see `Tokenizer`.

        A word begins at a subword with a space before it, which SentencePiece writes as
        U+2581; more spaces are part of the same word. Padding and the end of sentence
        are not part of a word.
        """
        return word_spans_of(ids, self.pieces(ids))

    def word_starts(self) -> tuple[int, ...]:
        """Return the ids of the subwords with a space before them, ascending."""
        pieces = self.pieces(range(self.vocab_size))
        return tuple(k for k, piece in enumerate(pieces) if piece.startswith(SPACE))

    def has_byte_fallback(self) -> bool:
        """Return whether every character of a text survives encoding."""
        return self._processor.piece_to_id("<0x00>") != UNK_ID

    def in_graph(self) -> InGraphTokenizer:
        from t2t_repro.text.in_graph import InGraphSentencePiece

        return InGraphSentencePiece(self._content)


def train_sentencepiece(
    lines: Iterable[str],
    *,
    vocab_size: int,
    model_type: str = "bpe",
    character_coverage: float = 0.9999,
) -> bytes:
    """Train a subword model; the same lines always give the same model.

    If the text is too small for `vocab_size` subwords, the vocabulary is smaller and a
    warning is logged, so that a few hundred lines are enough to try the toolkit.

    Args:
        lines: The training text; lines may have any length.
        vocab_size: Number of entries, including the 3 special ones and the 256 bytes.
        model_type: "bpe" or "unigram".
        character_coverage: Share of the characters of the text, from 0 to 1, that the
            most frequent characters must cover to get an entry; all others are spelt in
            bytes.

    Returns:
        Content of a SentencePiece model file.

    Raises:
        UserError: If the text is empty or `vocab_size` is too small for its characters.
    """
    source = _TrainingLines(lines)
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "normalization.tsv"
        rules.write_text(_NORMALIZATION_RULES, encoding="utf-8")
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(source),
                model_writer=model,
                vocab_size=vocab_size,
                model_type=model_type,
                character_coverage=character_coverage,
                normalization_rule_tsv=str(rules),
                pad_id=PAD_ID,
                eos_id=EOS_ID,
                unk_id=UNK_ID,
                bos_id=-1,
                byte_fallback=True,
                hard_vocab_limit=False,
                minloglevel=_ERRORS_ONLY,
            )
        except RuntimeError as error:
            raise source.error or _training_error(error, vocab_size) from error
    content = _portable(model.getvalue(), model_type)
    _warn_of_smaller_vocabulary(content, vocab_size)
    return content


def _portable(model: bytes, model_type: str) -> bytes:
    """Make a new model independent of the path and the software that runs it."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    if model_type == "unigram":
        for piece in proto.pieces:
            piece.score = round(piece.score / _SCORE_STEP) * _SCORE_STEP
    return proto.SerializeToString(deterministic=True)


class _TrainingLines:
    """Lines split into lengths that the trainer accepts.

    The trainer replaces an error of its iterator by a different one.

    Attributes:
        error: The error that stopped the iteration, if any.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            for line in self._lines:
                yield from _split(_trainable(line))
        except Exception as error:
            self.error = error
            raise


def _trainable(line: str) -> str:
    # The trainer ignores lines that contain its separators, such as TAB.
    return sanitize(line).replace("\t", " ").replace("\0", " ").replace("\u2585", " ")


def _split(line: str) -> Iterator[str]:
    for start in range(0, len(line), _LONGEST_TRAINING_LINE):
        yield line[start : start + _LONGEST_TRAINING_LINE]


def sanitize(text: str) -> str:
    """Empty a blank text, and replace lone surrogates, which UTF-8 lacks, by U+FFFD."""
    if is_blank(text):
        return ""
    if text.isascii():
        return text
    return _LONE_SURROGATES.sub("\ufffd", text)


def _training_error(error: RuntimeError, vocab_size: int) -> Exception:
    message = str(error)
    required = re.search(r"required_chars\. \d+ vs (\d+)", message)
    if required:
        return UserError(
            f"received vocabulary size {vocab_size}, expected at least "
            f"{required.group(1)} (3 special entries, 256 bytes and the characters of "
            f"the text): raise vocab_size, or the size of the problem's Vocabulary"
        )
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return UserError(
            "received no text to learn subwords from, expected at least one line "
            "that is not blank"
        )
    return UserError(
        f"learning the subword vocabulary failed: {message.strip()[-200:]}"
    )


def _warn_of_smaller_vocabulary(model: bytes, vocab_size: int) -> None:
    size = sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()
    if size < vocab_size:
        logger.warning(
            "the training text is too small for %d subwords: the vocabulary has %d; "
            "a smaller vocab_size would generalize better",
            vocab_size,
            size,
        )
