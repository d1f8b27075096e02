from __future__ import annotations

import functools
import string

import numpy as np
import pytest

from t2t_repro.data.problem import Problem
from t2t_repro.decoding.translator import Translator
from t2t_repro.errors import UserError
from t2t_repro.features.ensembles.ensemble_model import Ensemble
from t2t_repro.runs import scoring
from t2t_repro.runs.scoring import PairScorer
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SymbolTokenizer
from tests.support.tiny_model import tiny_transformer

SOURCE = SymbolTokenizer(tuple(string.ascii_lowercase[:8]))
TARGET = SymbolTokenizer(tuple(string.ascii_uppercase[:8]))
MAX_LENGTH = 12
# So long that a search ends.
HPARAMS = DecodeHParams(beam_size=3, alpha=0.9, extra_length=50)
SHORT = HPARAMS.replace(extra_length=4)
SOURCES = ["a b c", "h g f e d c b a", "", "b", "c b a h e", "a b c"]
TARGETS = ["A", "B C D E F G H A B C", "", "D E", "H G", "C B A"]


class Shifted(Problem):
    """A problem whose users write other forms than the model."""

    def normalize_source(self, sentence):
        return sentence.lower()

    def encode_target(self, target):
        return target.upper()


@pytest.fixture(scope="module")
def model():
    return tiny_transformer(3, num_encoder_layers=1, num_decoder_layers=1)


@pytest.fixture(scope="module")
def ensemble(model):
    """Return a model with another, which is smaller and has other probabilities."""
    sizes = {"hidden_size": 12, "num_heads": 3, "num_encoder_layers": 1}
    sizes |= {"attention_key_channels": 12, "attention_value_channels": 12}
    return Ensemble([model, tiny_transformer(4, **sizes)])


@pytest.fixture(scope="module")
def scorer():
    """Return a function that makes each scorer once, because it traces its model."""

    @functools.cache
    def made(model, hparams=HPARAMS):
        return PairScorer(model, (SOURCE, TARGET), Shifted(), hparams, MAX_LENGTH)

    return made


def log_probs_one_by_one(model, source, target):
    """Return the log-probability of every token, by NumPy from the logits of a pair."""
    inputs, targets = [*SOURCE.encode(source), 1], [*TARGET.encode(target), 1]
    features = {"inputs": np.array([inputs]), "targets": np.array([targets])}
    logits = np.asarray(model(features, training=False), np.float64)[0]
    total = np.log(np.exp(logits).sum(axis=-1))
    return logits[np.arange(len(targets)), targets] - total


def test_every_token_has_its_log_probability(scorer, model):
    found = list(scorer(model).score(SOURCES, TARGETS))
    for source, target, score in zip(SOURCES, TARGETS, found, strict=True):
        if source:
            expected = log_probs_one_by_one(model, source, target)
            np.testing.assert_allclose(score.token_log_probs, expected, atol=1e-5)
            assert score.log_prob == pytest.approx(expected.sum(), abs=1e-4)
            assert score.tokens == (*target.split(), "</s>")


def test_the_score_has_the_length_penalty(scorer, model):
    (score,) = scorer(model).score(["a b"], ["A B C"])
    assert score.score == pytest.approx(score.log_prob / ((5 + 4) / 6) ** 0.9)


def test_an_empty_pair_is_certain(scorer, model):
    for score in scorer(model).score(["", "\u200b"], [" ", "\u00a0"]):
        assert (score.log_prob, score.score, score.tokens) == (0.0, 0.0, ())


def test_the_probability_of_a_token_is_the_mean_of_an_ensembles(scorer, ensemble):
    found = list(scorer(ensemble).score(SOURCES[:2], TARGETS[:2]))
    for source, target, score in zip(SOURCES, TARGETS, found, strict=False):
        own = [log_probs_one_by_one(m, source, target) for m in ensemble.members]
        expected = np.log((np.exp(own[0]) + np.exp(own[1])) / 2)
        np.testing.assert_allclose(score.token_log_probs, expected, atol=1e-5)
        assert np.abs(expected - own[0]).max() > 1e-3


@pytest.mark.filterwarnings("ignore:You are using a softmax over axis")
def test_scores_of_hypotheses_are_those_of_the_search(scorer, model):
    hparams = HPARAMS.replace(return_beams=True)
    translator = Translator(model, SOURCE, TARGET, hparams, MAX_LENGTH)
    made = scorer(model)
    for source in filter(None, SOURCES):
        (hypotheses,) = translator.translate([source])
        ids = [*SOURCE.encode(source), 1]
        found = made.token_log_probs([(ids, list(h.ids)) for h in hypotheses])
        for hypothesis, log_probs in zip(hypotheses, found, strict=True):
            penalty = ((5 + len(hypothesis.ids)) / 6) ** 0.9
            expected = pytest.approx(hypothesis.score, abs=1e-5)
            assert log_probs.sum() / penalty == expected


def test_scores_do_not_depend_on_batches_and_chunks(scorer, model, monkeypatch):
    expected = list(scorer(model).score(SOURCES, TARGETS))
    monkeypatch.setattr(scoring, "CHUNK_SIZE", 2)
    done = []
    small = SHORT.replace(batch_size=16)
    found = list(scorer(model, small).score(SOURCES, TARGETS, done.append))
    assert [score.tokens for score in found] == [score.tokens for score in expected]
    np.testing.assert_allclose(
        [score.log_prob for score in found],
        [score.log_prob for score in expected],
        atol=1e-5,
    )
    assert sum(done) == len(SOURCES)


def test_batches_are_limited_by_tokens(scorer, model, monkeypatch):
    made = scorer(model, SHORT.replace(batch_size=16))
    shapes = []
    losses = made._losses

    def recorded(batch):
        shapes.append(batch["targets"].shape)
        return losses(batch)

    monkeypatch.setattr(made, "_losses", recorded)
    list(made.score(SOURCES, TARGETS))
    assert all(rows == 1 or rows * length <= 16 for rows, length in shapes)
    assert sum(rows for rows, _ in shapes) == len(SOURCES) - 1


def test_texts_are_read_in_the_forms_of_the_problem(scorer, model):
    (expected,) = scorer(model).score(["a b"], ["C D"])
    (found,) = scorer(model).score(["A B"], ["c d"])
    assert found == expected


@pytest.mark.parametrize(
    ("source", "target", "answer"),
    [
        ("a", "", "line 2: received an empty target"),
        (" ", "A", "line 2: received an empty source"),
        ("a", "A x B", "line 2: received a target with 'X', which is not in"),
        ("a " * 12, "A", "line 2: received a source of 13 tokens .* at most 12"),
        ("a", "A " * 16, "line 2: received a target of 17 tokens .* at most 16"),
    ],
)
def test_a_bad_pair_is_refused_before_any_score(scorer, model, source, target, answer):
    with pytest.raises(UserError, match=answer):
        scorer(model, SHORT).score(["a", source], ["A", target])


def test_the_longest_texts_are_scored(scorer, model):
    (score,) = scorer(model).score(["a " * 11], ["A " * 61])
    assert len(score.tokens) == 62


def test_any_iterables_of_texts_are_scored(scorer, model):
    expected = list(scorer(model).score(SOURCES, TARGETS))
    assert list(scorer(model).score(iter(SOURCES), np.array(TARGETS))) == expected
    with pytest.raises(ValueError, match="`targets` must be a list of sentences"):
        scorer(model).score(["a b"], "A B")


def test_different_numbers_of_lines_are_refused(scorer, model):
    with pytest.raises(UserError, match="2 lines in the sources and 1 in the targets"):
        scorer(model).score(["a", "b"], ["A"])
