from __future__ import annotations

import logging
import math

import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

from t2t_repro.data.problem import Problem
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.runs.evaluators import likelihood_evaluator, translation_evaluator
from tests.support.tiny_model import padded, random_sentences, tiny_transformer


class Texts:
    """A replacement for the log of a run."""

    def __init__(self):
        self.written = {}

    def text(self, split, step, name, markdown):
        self.written[split, step, name] = markdown


class Dictionary:
    """A replacement for a translator."""

    def __init__(self, translations, cut=0):
        self.translations = translations
        self.cut = cut

    def count_cut(self, sentences):
        return self.cut

    def translate(self, sentences, *, reports_cuts):
        assert not reports_cuts
        return [
            [Hypothesis(self.translations[s], -1.0), Hypothesis("worse", -2.0)]
            for s in sentences
        ]


@pytest.fixture(scope="module")
def model():
    # Dropout must be off in an evaluation.
    return tiny_transformer(
        num_encoder_layers=1, num_decoder_layers=1, layer_prepostprocess_dropout=0.5
    )


SOURCES = random_sentences(1, [5, 3, 7, 2])
TARGETS = random_sentences(2, [4, 6, 2, 3])


def batch_of(numbers, length):
    sides = {"inputs": SOURCES, "targets": TARGETS}
    return {
        side: tf.constant(padded([sentences[n] for n in numbers], length))
        for side, sentences in sides.items()
    }


def evaluate(model, batches):
    return likelihood_evaluator(model, batches)(1, None)


@pytest.fixture(scope="module")
def expected(model):
    """Return the scores of the sentences one by one, without padding."""
    nll, right, tokens = 0.0, 0, 0
    for number, targets in enumerate(TARGETS):
        batch = batch_of([number], None)
        logits = model(batch, training=False).numpy()[0].astype(np.float64)
        log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        nll -= sum(row[token] for row, token in zip(log_probs, targets, strict=True))
        right += int((logits.argmax(axis=-1) == targets).sum())
        tokens += len(targets)
    return {
        "nll": nll / tokens,
        "perplexity": math.exp(nll / tokens),
        "token_accuracy": right / tokens,
    }


def test_batches_and_padding_do_not_change_dev_scores(model, expected):
    filled = {
        side: tf.pad(ids, [[0, 3], [0, 0]])
        for side, ids in batch_of([0, 1, 2], 9).items()
    }
    metrics = evaluate(model, [filled, batch_of([3], 4)])
    assert metrics == pytest.approx(expected, rel=1e-5)


def test_padding_predicted_at_padding_is_not_accurate():
    def predict_padding(batch, training):
        return 5.0 * tf.one_hot(tf.zeros_like(batch["targets"]), 11)

    metrics = evaluate(predict_padding, [batch_of([0, 1], 9)])
    assert metrics["token_accuracy"] == 0.0


def test_without_dev_pairs_there_is_a_warning_and_no_score(model, caplog):
    caplog.set_level(logging.WARNING, "t2t_repro")
    assert evaluate(model, []) == {}
    assert "no dev pair is short enough" in caplog.text


TRANSLATIONS = {"ein Haus": "a house", "zwei | drei": "two | three", "_E*d_": ""}
REFERENCES = ["a house", "two or three", "end"]


def test_bleu_is_that_of_the_best_hypotheses():
    evaluator = translation_evaluator(
        Dictionary(TRANSLATIONS), list(TRANSLATIONS), REFERENCES, Problem()
    )
    hypotheses = list(TRANSLATIONS.values())
    expected = sacrebleu.corpus_bleu(hypotheses, [REFERENCES]).score
    assert evaluator(1, Texts()) == {"bleu": pytest.approx(expected)}


def test_three_translations_are_written_as_a_table_of_text():
    log = Texts()
    translations = TRANSLATIONS | {"vier": "four"}  # not among the first three
    sources, references = list(translations), [*REFERENCES, "four"]
    evaluator = translation_evaluator(
        Dictionary(translations), sources, references, Problem()
    )
    evaluator(9, log)
    assert log.written["eval", 9, "translations"].splitlines() == [
        "| dev sentences |",
        "|---|",
        "| **source 1:** ein Haus |",
        "| **reference 1:** a house |",
        "| **translation 1, bleu 100.0:** a house |",
        r"| **source 2:** zwei \| drei |",
        "| **reference 2:** two or three |",
        r"| **translation 2, bleu 34.7:** two \| three |",
        r"| **source 3:** \_E\*d\_ |",
        "| **reference 3:** end |",
        "| **translation 3, bleu 0.0:**  |",
    ]


def test_long_dev_sentences_are_reported_once_and_not_at_every_evaluation(caplog):
    caplog.set_level(logging.WARNING, "t2t_repro")
    translator = Dictionary(TRANSLATIONS, cut=2)
    sources = list(TRANSLATIONS)
    evaluator = translation_evaluator(translator, sources, REFERENCES, Problem())
    evaluator(1, Texts())
    evaluator(2, Texts())
    (message,) = caplog.messages
    assert message.startswith("2 of 3 dev sentences are longer than max_length")


class LengthProblem(Problem):
    metric = "length"

    def development_score(self, hypotheses, references):
        return len("".join(hypotheses)) + 1000 * len(references)


def test_the_problem_names_and_computes_the_score():
    evaluator = translation_evaluator(
        Dictionary(TRANSLATIONS), list(TRANSLATIONS), REFERENCES, LengthProblem()
    )
    length = sum(map(len, TRANSLATIONS.values()))
    log = Texts()
    assert evaluator(1, log) == {"length": length + 3000}
    lines = log.written["eval", 1, "translations"].splitlines()
    assert lines[4] == "| **translation 1, length 1007.0:** a house |"
