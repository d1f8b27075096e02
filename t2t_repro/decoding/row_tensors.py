"""Tensors that optional features of a search need."""

from __future__ import annotations

from typing import TypedDict

from keras import KerasTensor


class RowTensors(TypedDict, total=False):
    """Tensors of an optional feature, which follow the rows of the search.

    Attributes:
        prefixes: Tokens that the hypotheses of each sentence must begin with, int32
            `[rows, n]`, padded with PAD_ID. The last column has only padding.
        uniform: Random numbers of each position, needed for sampling, float64
            `[rows, max_length]`, at least 0 and less than 1.
        coverage: Attention that each source token has received, needed for the
            coverage penalty, float32 `[rows, beam, source_length]`; 1 at padding. The
            search updates it.
        word_kinds: Kind of each word of the source, needed for a grammar, int32
            `[rows, n]`, padded with -1. The last column has only padding.
    """

    prefixes: KerasTensor
    uniform: KerasTensor
    coverage: KerasTensor
    word_kinds: KerasTensor
