"""Values of the search's `RowTensors` for a batch of pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2t_repro.constants import PAD_ID
from t2t_repro.decoding.grammar import NO_WORD
from t2t_repro.decoding.pieces import Piece
from t2t_repro.settings.decode_hparams import DecodeHParams


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
        arrays["word_kinds"] = _padded([piece.word_kinds for piece in pieces], NO_WORD)
    if any(piece.prefix for piece in pieces):
        arrays["prefixes"] = _padded([piece.prefix for piece in pieces], PAD_ID)
    return arrays


def _padded(rows: Sequence[Sequence[int]], padding: int) -> np.ndarray:
    """Put rows into int32 `[rows, n]`, whose last column has only padding."""
    longest = max(map(len, rows))
    array = np.full((len(rows), longest + 1), padding, np.int32)
    for place, row in zip(array, rows, strict=True):
        place[: len(row)] = row
    return array


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
