from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.layers import TokenEmbedding


@pytest.fixture
def embedding() -> TokenEmbedding:
    layer = TokenEmbedding(vocab_size=50, hidden_size=16)
    layer.build()
    return layer


def test_a_token_is_its_row_times_the_root_of_the_width(embedding):
    table = embedding.table.numpy()
    embedded = embedding(np.array([[7, 3]]))
    np.testing.assert_allclose(embedded, [[4 * table[7], 4 * table[3]]], rtol=1e-6)


def test_padding_is_the_zero_vector(embedding):
    embedded = embedding(np.array([[0, 5, 0]])).numpy()
    assert [row.any() for row in embedded[0]] == [False, True, False]


def test_logits_are_products_with_the_same_rows(embedding):
    hidden = np.random.default_rng(0).normal(size=(2, 3, 16)).astype("float32")
    expected = hidden @ embedding.table.numpy().T
    np.testing.assert_allclose(embedding.logits(hidden), expected, atol=1e-5)


def test_rows_start_with_variance_one_over_the_width():
    layer = TokenEmbedding(vocab_size=2_000, hidden_size=64)
    layer.build()
    assert layer.table.numpy().std() == pytest.approx(64**-0.5, rel=0.02)
