"""Prefixes, samples and coverage of whole translations."""

from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.decoding.translator import Translator
from t2t_repro.features.ensembles.ensemble_model import Ensemble
from t2t_repro.models.attention_weights import attention_weights
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SymbolTokenizer
from tests.support.numpy_transformer import softmax
from tests.support.tiny_model import padded, tiny_transformer

pytestmark = pytest.mark.usefixtures("shared_searches")
SYMBOLS = SymbolTokenizer(tuple("abcdefgh"))
SENTENCES = ["a b c", "", "h g f e d c b a", "a", "c b a", "b b b b b", "a b c"]
EXTRA_LENGTH = 6


@pytest.fixture(scope="module")
def model():
    return tiny_transformer(4, num_encoder_layers=1, num_decoder_layers=1)


def translator(model, **hparams) -> Translator:
    settings = DecodeHParams(extra_length=EXTRA_LENGTH).replace(**hparams)
    return Translator(model, SYMBOLS, SYMBOLS, settings, 9)


def test_the_own_output_as_prefix_changes_nothing(model):
    system = translator(model, beam_size=1)
    greedy = system.translate(SENTENCES)
    # Without EOS, and without what leaves no place for EOS.
    prefixes = [
        " ".join(own.text.split()[: len(sentence.split()) + EXTRA_LENGTH])
        for (own,), sentence in zip(greedy, SENTENCES, strict=True)
    ]
    found = system.translate(SENTENCES, prefixes=prefixes)
    for (best,), (own,) in zip(found, greedy, strict=True):
        assert best.ids == own.ids
        assert best.score == pytest.approx(own.score, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_every_hypothesis_begins_with_its_prefix(model, beam_size):
    prefixes = ["h", "", "a a a", "", "g f", "h h h h h h", "d"]
    system = translator(model, beam_size=beam_size, return_beams=beam_size > 1)
    found = system.translate(SENTENCES, prefixes=prefixes)
    free = system.translate(SENTENCES)
    for hypotheses, own, prefix in zip(found, free, prefixes, strict=True):
        assert all(h.text.startswith(prefix) for h in hypotheses)
        if not prefix:
            assert [h.text for h in hypotheses] == [h.text for h in own]
    assert found != free


SAMPLING = {
    "beam_size": 1,
    "sampling_method": "random",
    "sampling_seed": 3,
    "sampling_keep_top_k": 4,
}


def test_a_sample_depends_on_neither_batch_nor_chunk(model):
    system = translator(model, **SAMPLING)
    together = system.translate(SENTENCES)
    for number, sentence in enumerate(SENTENCES):
        ((alone,),) = system.translate([sentence], first=number)
        assert alone.ids == together[number][0].ids
        assert alone.score == pytest.approx(together[number][0].score, abs=1e-4)
    chunks = [*system.stream(SENTENCES, chunk_size=2)]
    assert [h.ids for (h,) in chunks] == [h.ids for (h,) in together]
    # Equal sentences on other lines differ.
    assert together[0][0].ids != together[6][0].ids


def log_probs_and_coverages(models, pairs, beta):
    """Yield the score parts of translations, by one whole pass through each model."""
    sources = [[*SYMBOLS.encode(sentence), 1] for sentence, _ in pairs]
    targets = [[*ids] for _, ids in pairs]
    features = {"inputs": padded(sources), "targets": padded(targets)}
    found = [attention_weights(model, features) for model in models]
    p = sum(softmax(np.array(weights.logits)) for weights in found) / len(models)
    memory = sum(np.array(weights.memory)[:, -1].mean(axis=1) for weights in found)
    for row, (source, ids) in enumerate(zip(sources, targets, strict=True)):
        log_prob = np.log(p[row, np.arange(len(ids)), ids]).sum()
        received = memory[row, : len(ids), : len(source)].sum(axis=0) / len(models)
        yield log_prob, beta * np.log(np.minimum(received, 1.0)).sum()


@pytest.mark.parametrize("count", [1, 2])
def test_scores_have_the_coverage_of_the_last_layers_attention(count):
    heads = {"num_heads": 4, "num_decoder_layers": 1}
    models = [tiny_transformer(6), tiny_transformer(5, **heads)][:count]
    system = translator(
        models[0] if count == 1 else Ensemble(models),
        coverage_penalty=0.8,
        alpha=0.6,
        min_length=2,
        return_beams=True,
    )
    found = [
        (sentence, hypothesis)
        for sentence, hypotheses in zip(
            SENTENCES, system.translate(SENTENCES), strict=True
        )
        for hypothesis in hypotheses
        if sentence
    ]
    pairs = [(sentence, hypothesis.ids) for sentence, hypothesis in found]
    parts = [*log_probs_and_coverages(models, pairs, 0.8)]
    for (_, hypothesis), (log_prob, cover) in zip(found, parts, strict=True):
        expected = log_prob / ((5 + len(hypothesis.ids)) / 6) ** 0.6 + cover
        assert hypothesis.score == pytest.approx(expected, abs=1e-3)
    assert min(cover for _, cover in parts) < -0.1
