from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.layers import WordPositions
from tests.support.numpy_transformer import sinusoid

STARTS = (3, 5, 6)


def word_positions(**options):
    return WordPositions(hidden_size=6, vocab_size=8, word_starts=STARTS, **options)


def test_words_are_counted_up_to_and_including_each_token():
    ids = np.array([[0, 3, 4, 5, 2, 6, 1], [7, 7, 3, 3, 3, 1, 0]])
    expected = [[0, 1, 1, 2, 2, 3, 3], [0, 0, 1, 2, 3, 3, 3]]
    np.testing.assert_array_equal(word_positions().count(ids), expected)


def test_the_sentences_of_a_row_are_counted_on_their_own():
    sentences = [[3, 4, 5, 1], [0, 6, 6], [5, 1]]
    row = np.array([[*sentences[0], *sentences[1], *sentences[2], 0, 0]])
    position = np.array([[0, 1, 2, 3, 0, 1, 2, 0, 1, 0, 0]])
    layer = word_positions()
    alone = [layer.count(np.array([sentence]))[0] for sentence in sentences]
    found = layer.count(row, position)[0]
    np.testing.assert_array_equal(found, [*np.concatenate(alone), 0, 0])


def test_a_token_begins_a_word_or_not():
    np.testing.assert_array_equal(
        word_positions().begins(np.arange(8)[None]), [[0, 0, 0, 1, 0, 1, 1, 0]]
    )


def test_the_encodings_are_the_sinusoids_in_reverse_order():
    encodings = word_positions()(np.array([[0, 1], [17, 200]]))
    expected = [sinusoid(n, 6, "interleaved")[::-1] for n in (0, 1, 17, 200)]
    np.testing.assert_allclose(
        np.reshape(encodings, (4, 6)), expected, rtol=0, atol=3e-5
    )


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_the_encodings_have_the_compute_dtype(policy):
    layer = word_positions(dtype=policy)
    assert layer(np.array([[0, 1]])).dtype == layer.compute_dtype
