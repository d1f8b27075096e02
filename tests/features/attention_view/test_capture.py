from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.capture import (
    capture_attention,
    encode_side,
)
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.text import SymbolTokenizer
from tests.support.tiny_model import tiny_transformer

DIGITS = SymbolTokenizer([str(digit) for digit in range(8)])


@pytest.fixture(scope="module")
def model():
    return tiny_transformer(seed=5)


def test_a_captured_pair_has_the_models_weights_tokens_and_score(model):
    source, target = [5, 4, 7, 1], [3, 9, 1]
    found = capture_attention(model, (DIGITS, DIGITS), source, target, title="a")
    pair = {"inputs": np.array([source]), "targets": np.array([target])}
    expected = attention_weights(model, pair)
    for name in ("encoder_self", "decoder_self", "memory"):
        np.testing.assert_array_equal(
            getattr(found, name), np.asarray(getattr(expected, name))[0]
        )
    assert found.source.tokens == ("2", "1", "4", "</s>")
    assert (found.source.text, found.target.text) == ("2 1 4", "0 6")
    assert found.target.shifted().tokens == ("<start>", "0", "6")
    logits = np.asarray(expected.logits, np.float64)[0]
    normalizers = np.log(np.exp(logits).sum(-1))
    score = sum(logits[t, token] - normalizers[t] for t, token in enumerate(target))
    assert found.score == pytest.approx(score, abs=1e-5)
    assert found.title == "a"


def test_an_empty_translation_attends_from_its_end_alone(model):
    found = capture_attention(model, (DIGITS, DIGITS), [5, 4, 1], [1])
    assert found.target.tokens == ("</s>",)
    assert found.memory.shape == (2, 2, 1, 3)
    assert found.decoder_self.shape == (2, 2, 1, 1)
    np.testing.assert_array_equal(found.decoder_self, 1.0)


def test_attention_over_parameters_is_cut_to_the_sentence():
    model = tiny_transformer(
        seed=5,
        ffn_layer="parameter_attention",
        parameter_attention_heads=2,
        parameter_attention_key_channels=4,
        parameter_attention_value_channels=6,
    )
    found = capture_attention(model, (DIGITS, DIGITS), [5, 4, 6, 1], [1])
    assert found.encoder_parameters.shape == (2, 2, 4, 12)
    assert found.decoder_parameters.shape == (2, 2, 1, 12)


def test_texts_are_encoded_with_an_end_of_sentence():
    assert encode_side(DIGITS, "0 7", 3, "source") == [3, 10, 1]
    assert encode_side(DIGITS, "7", 3, "target") == [10, 1]
    assert encode_side(DIGITS, "0 unheard", 3, "source") == [3, 2, 1]


def test_a_target_outside_of_the_vocabulary_is_refused_with_its_word():
    with pytest.raises(UserError, match="received a target with 'unheard', which"):
        encode_side(DIGITS, "1 unheard 2", 9, "target")
