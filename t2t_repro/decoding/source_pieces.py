"""Sources in pieces that fit the model, with the prefixes of their translations.

Differs from tensor2tensor (`utils/decoding.py`), which decodes a long source whole: the
model has never seen positions beyond its `max_length`.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import logging
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from t2t_repro.constants import EOS_ID, NO_WORD, PAD_ID
from t2t_repro.data.batch_plan import padded
from t2t_repro.errors import UserError
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text.tokenizer import Tokenizer
from t2t_repro.text_tables import quantity

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Piece:
    """A source or a part of it, which is translated at once.

    Attributes:
        ids: Source ids, with EOS.
        sentence: Number of its sentence in the whole input, counted from 0.
        part: Number of the piece in its sentence, counted from 0.
        prefix: Target ids that its translation begins with.
        word_kinds: Kinds of the words that begin in it, if there is a grammar.
    """

    ids: list[int]
    sentence: int
    part: int = 0
    prefix: list[int] = dataclasses.field(default_factory=list)
    word_kinds: list[int] = dataclasses.field(default_factory=list)


def cut(
    ids: Sequence[int], longest: int, sentence: int, prefix: list[int]
) -> list[Piece]:
    """Append EOS to a source, and cut one that is too long for the model.

    Args:
        ids: Source ids, without EOS. An empty source has no piece.
        longest: Largest number of ids of a piece, without EOS.
        sentence: Number of the sentence in the whole input.
        prefix: Target ids that the translation of the first piece begins with.
    """
    return [
        Piece(
            ids=[*ids[start : start + longest], EOS_ID],
            sentence=sentence,
            part=part,
            prefix=[] if part else prefix,
        )
        for part, start in enumerate(range(0, len(ids), longest))
    ]


def report_cuts(pieces: Sequence[Piece], longest: int) -> None:
    """Log which sentences have several pieces.

    Args:
        pieces: Pieces of sentences, in order.
        longest: Largest number of ids of a piece, without EOS.
    """
    for sentence, group in itertools.groupby(pieces, key=lambda p: p.sentence):
        lengths = [len(piece.ids) - 1 for piece in group]
        if len(lengths) > 1:
            logger.warning(
                "line %d has %d tokens, more than %d: translated in %d pieces",
                sentence + 1,
                sum(lengths),
                longest,
                len(lengths),
            )


def pieces_of_sentences(pieces: Sequence[Piece], first: int, end: int) -> list[Piece]:
    """Return the pieces of the sentences from number `first` to before `end`.

    Args:
        pieces: Pieces of sentences, in order.
        first: Number of the first sentence.
        end: Number of the sentence after the last one.
    """
    places = (
        bisect.bisect_left(pieces, number, key=lambda p: p.sentence)
        for number in (first, end)
    )
    return list(pieces[slice(*places)])


def parts_of_chunk(
    pieces: Sequence[Piece], count: int, first: int, limit: int
) -> Iterator[tuple[slice, list[Piece]]]:
    """Split a chunk before every very long sentence.

    The sentences before it then need not wait until it is translated.

    Args:
        pieces: Pieces of the sentences, in order.
        count: Number of sentences.
        first: Number of the first one in the whole input.
        limit: Largest number of tokens of a sentence that is not very long.

    Yields:
        The place of a part in the chunk, and its pieces.
    """
    tokens: Counter[int] = Counter()
    for piece in pieces:
        tokens[piece.sentence - first] += len(piece.ids)
    starts = {0, *(number for number, total in tokens.items() if total > limit)}
    for start, end in itertools.pairwise([*sorted(starts), count]):
        yield slice(start, end), pieces_of_sentences(pieces, first + start, first + end)


def with_words(
    pieces: Sequence[Piece], word_kinds: Sequence[int], starts: Sequence[int]
) -> list[Piece]:
    """Give each piece of a sentence the words that begin in it.

    Args:
        pieces: The pieces, in order.
        word_kinds: Kind of each word of the sentence.
        starts: Index of the first id of each word in the ids of the sentence. If the
            tokenizer sees fewer words, the last piece gets the rest.
    """
    ends = itertools.accumulate(len(piece.ids) - 1 for piece in pieces)
    first, found = 0, []
    for piece, end in zip(pieces, ends, strict=True):
        is_last = len(found) + 1 == len(pieces)
        next_first = len(word_kinds) if is_last else bisect.bisect_left(starts, end)
        words = [*word_kinds[first:next_first]]
        found.append(dataclasses.replace(piece, word_kinds=words))
        first = next_first
    return found


def encode_prefixes(
    tokenizer: Tokenizer, prefixes: Sequence[str], num_sentences: int, first: int
) -> list[list[int]]:
    """Return the ids of target prefixes.

    Args:
        tokenizer: Tokenizer of the targets.
        prefixes: One prefix per sentence; an empty one forces nothing.
        num_sentences: Number of sentences.
        first: Number of the first sentence in the whole input.

    Raises:
        UserError: If the numbers differ, or a prefix has a token that the model cannot
            write.
    """
    if len(prefixes) != num_sentences:
        raise UserError(
            f"received {quantity(num_sentences, 'sentence')} and "
            f"{quantity(len(prefixes), 'target prefix', 'target prefixes')}, "
            "expected one prefix per sentence; an empty one forces nothing."
        )
    encoded = tokenizer.encode_batch(prefixes)
    for number, ids in enumerate(encoded):
        if tokenizer.unknown_id in ids:
            raise UserError(
                f"line {first + number + 1}: received the target prefix "
                f"{prefixes[number]!r}, which has a word that is not in the vocabulary "
                "of the targets: the model cannot write it."
            )
    return encoded


def check_prefix_lengths(pieces: Sequence[Piece], extra_length: int) -> None:
    """Refuse a prefix that leaves no place for EOS.

    Args:
        pieces: Pieces with prefixes.
        extra_length: Extra tokens that a translation may have over its source.

    Raises:
        UserError: If a prefix is too long.
    """
    for piece in pieces:
        limit = len(piece.ids) + extra_length
        if len(piece.prefix) >= limit:
            raise UserError(
                f"line {piece.sentence + 1}: received a target prefix of "
                f"{len(piece.prefix)} tokens, expected at most {limit - 1}: the "
                f"translation may have {limit} tokens with its end, those of the "
                f"source and extra_length={extra_length} more."
            )


def row_arrays(
    pieces: Sequence[Piece], source_length: int, hparams: DecodeHParams
) -> dict[str, np.ndarray]:
    """Return the values of `RowTensors` for a batch.

    Args:
        pieces: The rows of the batch.
        source_length: Padded length of the sources.
        hparams: Settings of the search.

    Returns:
        "uniform" if the settings sample, "word_kinds" if they follow a grammar, and
        "prefixes" if a piece has one.
    """
    arrays = {}
    if hparams.samples:
        count = source_length + hparams.extra_length
        rows = [
            uniform_numbers(hparams.sampling_seed, piece.sentence, piece.part, count)
            for piece in pieces
        ]
        arrays["uniform"] = np.stack(rows)
    if hparams.follows_grammar:
        arrays["word_kinds"] = _pad_rows(
            [piece.word_kinds for piece in pieces], NO_WORD
        )
    if any(piece.prefix for piece in pieces):
        arrays["prefixes"] = _pad_rows([piece.prefix for piece in pieces], PAD_ID)
    return arrays


def _pad_rows(rows: Sequence[Sequence[int]], padding: int) -> np.ndarray:
    """Put rows into int32 `[rows, n]`, whose last column has only padding."""
    return padded(rows, max(map(len, rows)) + 1, padding)


def uniform_numbers(seed: int, sentence: int, piece: int, count: int) -> np.ndarray:
    """Return the random numbers of the positions of a translation.

    They depend on nothing else, so neither the batch nor the order of sentences changes
    a sample, and a longer translation begins with the same numbers.

    Args:
        seed: Seed of the user.
        sentence: Number of the sentence in the whole input.
        piece: Number of the piece of its source.
        count: Number of positions.

    Returns:
        float64 `[count]`, at least 0 and less than 1.
    """
    return np.random.default_rng((seed, sentence, piece)).random(count)
