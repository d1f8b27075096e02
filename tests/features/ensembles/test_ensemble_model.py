"""Several models as one, against NumPy and against the single models."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.data.pipeline import BATCH_SIGNATURE
from t2t_repro.decoding.translator import Translator, members
from t2t_repro.features.ensembles.ensemble_model import Ensemble
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SymbolTokenizer
from tests.support.numpy_transformer import softmax
from tests.support.tiny_model import padded, random_sentences, tiny_transformer

pytestmark = pytest.mark.usefixtures("shared_searches")
SYMBOLS = SymbolTokenizer(tuple("abcdefgh"))
SENTENCES = ["a b c", "h g f e d c b a", "a", "c b a", "b b b b b"]
INPUTS = padded(random_sentences(3, [5, 7, 3]))


@pytest.fixture(scope="module")
def models():
    names = ("hidden_size", "attention_key_channels", "attention_value_channels")
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    sizes = dict.fromkeys(names, 12) | {"num_heads": 3}
    return [tiny_transformer(1, **layers), tiny_transformer(2, **layers, **sizes)]


def translator(model, **hparams):
    settings = DecodeHParams(extra_length=4).replace(**hparams)
    return Translator(model, SYMBOLS, SYMBOLS, settings, 12)


def test_a_whole_pass_has_the_mean_probabilities(models):
    features = {"inputs": INPUTS, "targets": padded(random_sentences(4, [4, 6, 2]))}
    singles = [softmax(np.array(model(features))) for model in models]
    expected = np.log((singles[0] + singles[1]) / 2)
    found = np.array(Ensemble(models)(features))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_ensemble_of_a_model_with_itself_is_the_model(models):
    hparams = {"beam_size": 4, "return_beams": True}
    assert members(models[0]) == [models[0]]
    assert members(Ensemble(models)) == models
    twice = translator(Ensemble([models[0], models[0]]), **hparams)
    expected = translator(models[0], **hparams).translate(SENTENCES)
    for found, own in zip(twice.translate(SENTENCES), expected, strict=True):
        assert [h.ids for h in found] == [h.ids for h in own]
        np.testing.assert_allclose(
            [h.score for h in found], [h.score for h in own], atol=1e-5
        )


def greedy(computed, sentence):
    """Translate by whole passes, with the token of the highest mean probability."""
    ids = [*SYMBOLS.encode(sentence), EOS_ID]
    inputs = padded([ids], 9)  # a function is traced once per shape
    limit, tokens, log_prob = len(ids) + 4, [], 0.0
    while len(tokens) < limit and EOS_ID not in tokens:
        targets = padded([tokens], 13)
        features = {"inputs": inputs, "targets": targets}
        singles = [
            softmax(compute(features).numpy()[0, len(tokens)]) for compute in computed
        ]
        mean = sum(singles) / len(singles)
        log_prob += np.log(max(mean[1:]))
        tokens.append(int(np.argmax(mean[1:])) + 1)
    return tuple(tokens), log_prob / ((5 + len(tokens)) / 6) ** 0.6


def test_an_ensemble_of_two_translates_by_their_mean(models):
    found = translator(Ensemble(models), beam_size=1).translate(SENTENCES)
    # A call of a traced model is ten times as fast.
    computed = [tf.function(m, input_signature=[BATCH_SIGNATURE]) for m in models]
    for sentence, (hypothesis,) in zip(SENTENCES, found, strict=True):
        ids, score = greedy(computed, sentence)
        assert hypothesis.ids == ids
        assert hypothesis.score == pytest.approx(score, abs=1e-4)
    for compute in computed:
        single = [greedy([compute], sentence)[0] for sentence in SENTENCES]
        assert [h.ids for (h,) in found] != single
    assert all(PAD_ID not in h.ids for (h,) in found)


def test_models_of_other_vocabularies_are_refused(models):
    other = tiny_transformer(3, source_vocab_size=12, target_vocab_size=12)
    with pytest.raises(ValueError, match=r"\(11, 11\), \(12, 12\)"):
        Ensemble([models[0], other])
    with pytest.raises(ValueError, match="vocabularies"):
        Ensemble([])
