"""Masks of forbidden tokens, against loops over lists."""

from __future__ import annotations

import numpy as np
import pytest
from keras import ops

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.decoding.next_tokens import (
    Constraints,
    end_too_early,
    forbidden_tokens,
    outside_prefix,
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


def test_ngrams_occur_in_the_hypotheses_of_the_test(hypotheses):
    counts = [len(completing(row.tolist(), 3)) for row in hypotheses.reshape(-1, 9)]
    assert max(counts) > min(counts) == 0


@pytest.mark.parametrize(("position", "forbidden"), [(0, [1]), (3, [1]), (4, [])])
def test_only_eos_is_forbidden_and_only_before_the_minimum(position, forbidden):
    mask = np.array(end_too_early(position, 4, VOCAB_SIZE))
    assert mask.shape == (1, VOCAB_SIZE)
    assert np.flatnonzero(mask[0]).tolist() == forbidden


def test_a_prefix_forbids_all_tokens_but_its_own():
    prefixes = np.array([[5, 2, 0], [3, 0, 0]], "int32")
    mask, is_forced = map(np.array, outside_prefix(prefixes, 1, 2, VOCAB_SIZE))
    assert is_forced[:, 0].tolist() == [True, True, False, False]
    assert [np.flatnonzero(~row).tolist() for row in mask[:2]] == [[2], [2]]
    assert not mask[2:].any()


def test_positions_after_the_longest_prefix_are_free():
    prefixes = np.array([[5, 2, 0], [3, 0, 0]], "int32")
    for position in (2, 3, 50):
        mask, is_forced = outside_prefix(prefixes, position, 2, VOCAB_SIZE)
        assert not ops.any(mask)
        assert not ops.any(is_forced)


def test_without_constraints_there_is_no_mask(hypotheses):
    for constraints in (None, Constraints()):
        found = forbidden_tokens(constraints, hypotheses, 0, VOCAB_SIZE, NO_LIMITS)
        assert found is None


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("min_length", [3, LENGTH + 1])
def test_eos_is_allowed_early_only_where_no_other_token_is_left(size, min_length):
    """There are two tokens besides PAD and EOS, so some hypotheses have none left."""
    tokens = np.random.default_rng(2).integers(2, 4, (ROWS, BEAM, LENGTH))
    early = set()
    for position in range(LENGTH):
        ids = cut_at(tokens, position).astype("int32")
        constraints = Constraints(min_length, size)
        mask = forbidden_tokens(constraints, ids, position, 4, NO_LIMITS)
        for row, hypothesis in zip(
            np.array(mask), ids.reshape(-1, LENGTH), strict=True
        ):
            expected = completing(hypothesis[:position].tolist(), size)
            is_early = position < min_length
            if is_early:
                early.add(expected == {2, 3})
            if is_early and expected != {2, 3}:
                expected = expected | {EOS_ID}
            assert set(np.flatnonzero(row)) - {PAD_ID} == expected
    # Three tokens are too few to use up all pairs.
    assert early == ({True, False} if min_length > LENGTH or size == 1 else {False})


def test_constraints_add_up(hypotheses):
    ids = cut_at(hypotheses, 5)
    both = forbidden_tokens(Constraints(8, 2), ids, 5, VOCAB_SIZE, NO_LIMITS)
    repeats = np.array(repeated_ngrams(ids, 5, 2, VOCAB_SIZE))
    repeats[:, EOS_ID] = True
    # Some token is always left here.
    assert not repeats[:, 2:].all(axis=1).any()
    np.testing.assert_array_equal(np.array(both), repeats)
