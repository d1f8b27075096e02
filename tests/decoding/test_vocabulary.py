"""Compare the best tokens with sorted lists."""

from __future__ import annotations

import numpy as np
import pytest
from keras import ops

from t2t_repro.constants import PAD_ID
from t2t_repro.decoding.next_tokens import (
    MINUS_INFINITY,
    log_normalizer,
    top_k,
    top_log_probs,
)


def sorted_places(row: np.ndarray) -> list[int]:
    return sorted(range(len(row)), key=lambda place: (-row[place], place))


# Primes have no blocks, powers of two many; 8,000 and 37,000 are usual vocabularies.
@pytest.mark.parametrize("columns", [3, 64, 101, 640, 37000])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_the_highest_numbers_are_those_of_a_sorted_row(columns, count):
    count = min(count, columns)
    x = np.random.default_rng(columns).normal(size=(5, columns)).astype("float32")
    values, places = (
        np.array(found) for found in top_k(ops.convert_to_tensor(x), count)
    )
    expected = np.array([sorted_places(row)[:count] for row in x])
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis=1))


@pytest.mark.parametrize("columns", [64, 640, 8000])
def test_of_equal_numbers_the_lower_column_comes_first(columns):
    # Few different numbers: each is in many blocks.
    x = np.random.default_rng(columns).integers(0, 4, (6, columns)).astype("float32")
    x[0] = 0.0
    _, places = top_k(ops.convert_to_tensor(x), 9)
    expected = [sorted_places(row)[:9] for row in x]
    np.testing.assert_array_equal(np.array(places), expected)


@pytest.mark.parametrize("columns", [5, 640])
@pytest.mark.parametrize("pad", [-20.0, 20.0])
def test_log_probabilities_are_those_of_a_softmax_and_pad_is_never_found(columns, pad):
    x = 3.0 * np.random.default_rng(columns).normal(size=(4, columns))
    x[:, PAD_ID] = pad
    exact = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    logits = ops.convert_to_tensor(x.astype("float32"))
    log_probs, tokens = (np.array(found) for found in top_log_probs(logits, 3))
    assert log_probs.shape == tokens.shape == (4, 4)
    for row in range(4):
        real = [place for place in sorted_places(exact[row]) if place != PAD_ID]
        kept = tokens[row] != PAD_ID
        np.testing.assert_array_equal(tokens[row][kept], real[: kept.sum()])
        np.testing.assert_allclose(
            log_probs[row][kept], exact[row, tokens[row][kept]], atol=2e-6
        )
        assert (log_probs[row][~kept] == np.float32(MINUS_INFINITY)).all()
        assert kept.sum() >= 3


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("columns", [5, 640])
def test_a_bonus_changes_the_order_but_no_log_probability(columns, share):
    random = np.random.default_rng(columns)
    x = 3.0 * random.normal(size=(4, columns))
    bonus = random.choice([0.0, 7.0], columns)
    forbidden = random.uniform(size=(4, columns)) < share
    exact = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    ranks = np.where(forbidden, -np.inf, exact + bonus)
    ranks[:, PAD_ID] = -np.inf
    log_probs, tokens = (
        np.array(found)
        for found in top_log_probs(
            ops.convert_to_tensor(x.astype("float32")),
            columns - 1,
            ops.convert_to_tensor(forbidden) if share else None,
            bonus.astype("float32"),
        )
    )
    for row in range(4):
        kept = log_probs[row] > 0.5 * MINUS_INFINITY
        real = [p for p in sorted_places(ranks[row]) if np.isfinite(ranks[row, p])]
        np.testing.assert_array_equal(tokens[row][kept], real)
        np.testing.assert_allclose(log_probs[row][kept], exact[row, real], atol=2e-6)


def test_the_normalizer_neither_overflows_nor_loses_small_terms():
    x = np.array([[1e4, 1e4 - 1.0, -1e4], [-1e4, -1e4, -1e4 - 2.0], [0.0, -30.0, -9.0]])
    exact = x.max(axis=1) + np.log(np.exp(x - x.max(axis=1)[:, None]).sum(axis=1))
    logits = ops.convert_to_tensor(x.astype("float32"))
    found = log_normalizer(logits, ops.max(logits, axis=-1))
    # A probability near one has a resolution of 6e-8 in float32.
    np.testing.assert_allclose(np.array(found), exact, rtol=1e-6, atol=1e-7)
