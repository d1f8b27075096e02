"""Masks of forbidden tokens, against loops over lists."""

from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.decoding.next_tokens import (
    Constraints,
    forbidden_tokens,
    repeated_ngrams,
)

VOCAB_SIZE = 6
ROWS, BEAM, LENGTH = 20, 3, 9
NO_LIMITS = np.full(ROWS, 1_000, "int32")


@pytest.fixture(scope="module")
def hypotheses():
    tokens = np.random.default_rng(0).integers(2, VOCAB_SIZE, (ROWS, BEAM, LENGTH))
    return tokens.astype("int32")


def cut_at(hypotheses, position):
    """Return the hypotheses as they are at a position, padded."""
    return np.where(np.arange(LENGTH) < position, hypotheses, 0)


def completing(tokens, size):
    """Return the tokens that would complete an n-gram of the tokens again."""
    start = tokens[len(tokens) - size + 1 :] if len(tokens) >= size - 1 else None
    ngrams = [tokens[n : n + size] for n in range(len(tokens) - size + 1)]
    return {ngram[-1] for ngram in ngrams if ngram[:-1] == start}


@pytest.mark.parametrize("size", [1, 2, 3, 4, LENGTH, LENGTH + 5])
def test_tokens_that_complete_an_ngram_again_are_forbidden(hypotheses, size):
    for position in range(LENGTH):
        ids = cut_at(hypotheses, position)
        found = np.array(repeated_ngrams(ids, position, size, VOCAB_SIZE))
        for mask, row in zip(found, ids.reshape(-1, LENGTH), strict=True):
            expected = completing(row[:position].tolist(), size)
            # PAD, which stands for nothing, may be in the mask.
            assert set(np.flatnonzero(mask)) - {0} == expected


def test_without_constraints_there_is_no_mask(hypotheses):
    for constraints in (None, Constraints()):
        found = forbidden_tokens(constraints, hypotheses, 0, VOCAB_SIZE, NO_LIMITS)
        assert found is None
