from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.layers import CountedPositions
from tests.support.numpy_transformer import sinusoid

PLUS, MINUS = (3, 5, 6), (2, 7)


def counted(**options):
    given = {"hidden_size": 6, "vocab_size": 8, "plus": PLUS, "minus": MINUS}
    return CountedPositions(**(given | options))


def test_the_number_after_each_token_is_counted():
    ids = np.array([[0, 3, 4, 5, 2, 6, 1], [7, 7, 3, 3, 3, 1, 0]])
    expected = [[0, 1, 1, 2, 1, 2, 2], [-1, -2, -1, 0, 1, 1, 1]]
    np.testing.assert_array_equal(counted().count(ids), expected)


def test_a_number_may_only_increase():
    ids = np.array([[2, 3, 7, 5, 6]])
    np.testing.assert_array_equal(counted(minus=()).count(ids), [[0, 1, 1, 2, 3]])


def test_the_sentences_of_a_row_are_counted_on_their_own():
    sentences = [[3, 4, 5, 1], [0, 6, 2, 6], [5, 1]]
    row = np.array([[*sentences[0], *sentences[1], *sentences[2], 0, 0]])
    position = np.array([[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 0, 0]])
    layer = counted()
    alone = [layer.count(np.array([sentence]))[0] for sentence in sentences]
    found = layer.count(row, position)[0]
    np.testing.assert_array_equal(found, [*np.concatenate(alone), 0, 0])


def test_each_token_changes_the_number_by_at_most_one():
    np.testing.assert_array_equal(
        counted().changes(np.arange(8)[None]), [[0, 0, -1, 1, 0, 1, 1, -1]]
    )


@pytest.mark.parametrize(
    ("columns", "order"),
    [("reversed", [5, 4, 3, 2, 1, 0]), ("rolled", [3, 4, 5, 0, 1, 2])],
)
def test_the_encodings_are_the_sinusoids_in_another_order(columns, order):
    encodings = counted(columns=columns)(np.array([[0, 1], [17, 200]]))
    expected = [sinusoid(n, 6, "interleaved")[order] for n in (0, 1, 17, 200)]
    np.testing.assert_allclose(
        np.reshape(encodings, (4, 6)), expected, rtol=0, atol=3e-5
    )


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_the_encodings_have_the_compute_dtype(policy):
    layer = counted(dtype=policy)
    assert layer(np.array([[0, 1]])).dtype == layer.compute_dtype
