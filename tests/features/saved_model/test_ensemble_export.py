"""A SavedModel of several models."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.translator import Translator
from t2t_repro.features.ensembles.ensemble_model import Ensemble
from t2t_repro.features.saved_model.saved_model_export import exported_functions
from t2t_repro.features.saved_model.served_translator import ServedTranslator
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SymbolTokenizer
from tests.support.tiny_model import tiny_transformer

DIGITS = SymbolTokenizer([str(digit) for digit in range(8)])
LONGEST = 9
HPARAMS = DecodeHParams(beam_size=3, extra_length=4, batch_size=64)
SENTENCES = ["1 2 3", "", "7", "0 1 2 3 4 5 6 7", "3 1 4 1 5 2 6 5 3 5 0 7 7 3"]


@pytest.fixture(scope="module")
def models():
    return [
        tiny_transformer(seed, norm=norm, num_encoder_layers=1, num_decoder_layers=1)
        for seed, norm in ((12, "pre"), (5, "post"))
    ]


@pytest.fixture(scope="module")
def served(models):
    model = Ensemble(models)
    return ServedTranslator(model, DIGITS, DIGITS, HPARAMS, LONGEST, 4096)


@pytest.fixture(scope="module")
def signatures(served):
    return exported_functions(served)


def test_translations_are_those_of_the_ensemble_in_memory(models, signatures):
    found = signatures["serving_default"](tf.constant(SENTENCES))
    translator = Translator(Ensemble(models), DIGITS, DIGITS, HPARAMS, LONGEST)
    expected = [best for (best,) in translator.translate(SENTENCES)]
    assert [text.decode() for text in found["outputs"].numpy()] == [
        best.text for best in expected
    ]
    scores = [best.score for best in expected]
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4)
    assert set(signatures) == {"serving_default", "n_best", "score"}  # no attention


def test_a_score_is_the_logarithm_of_the_mean_probability_of_each_token(
    models, signatures
):
    found = signatures["score"](
        inputs=tf.constant(["1 2 3"]), targets=tf.constant(["4 5"])
    )
    features = {
        "inputs": np.array([[*DIGITS.encode("1 2 3"), 1]]),
        "targets": np.array([[*DIGITS.encode("4 5"), 1]]),
    }
    probabilities = np.mean(
        [tf.nn.softmax(model(features, training=False)) for model in models], axis=0
    )
    chosen = probabilities[0, np.arange(3), features["targets"][0]]
    np.testing.assert_allclose(found["scores"], [np.log(chosen).sum()], atol=1e-4)
