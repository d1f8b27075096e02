from __future__ import annotations

import pytest
import sacrebleu

from t2t_repro.errors import UserError
from t2t_repro.translation_scores import (
    bleu,
    pairwise_bleu,
    score_translations,
    sentence_bleu,
)

REFERENCES = ["the cat sat on the mat .", "It is Raining today in Oslo !", "a b c d e"]
HYPOTHESES = ["the cat sat on a mat .", "it is raining today in Oslo !", "a b c d"]


def test_scores_are_those_of_sacrebleu_with_its_signatures():
    scores = score_translations(HYPOTHESES, REFERENCES)
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert bleu(HYPOTHESES, REFERENCES) == scores.bleu.value
    assert scores.bleu.value == pytest.approx(expected)
    expected = sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert scores.chrf.value == pytest.approx(expected)
    assert "case:mixed" in scores.bleu.signature
    assert "tok:13a" in scores.bleu.signature
    assert "case:lc" in scores.bleu_lowercase.signature
    assert "nc:6" in scores.chrf.signature
    assert f"version:{sacrebleu.__version__}" in scores.chrf.signature
    assert scores.sentences == 3


@pytest.mark.parametrize(
    ("hypothesis", "reference", "ratio"), [("a b c", "a b c d e f", 0.5), ("a", "", 1)]
)
def test_the_length_ratio_divides_by_reference_words(hypothesis, reference, ratio):
    assert score_translations([hypothesis], [reference]).length_ratio == ratio


def test_case_counts_for_bleu_but_not_for_lower_cased_bleu():
    lower = [text.lower() for text in REFERENCES]
    scores = score_translations(lower, REFERENCES)
    assert scores.bleu.value < 99
    assert scores.bleu_lowercase.value == pytest.approx(100)


@pytest.mark.parametrize(
    ("hypotheses", "references", "received"),
    [(["a"], ["a", "b"], "1 translation and 2 references"), ([], [], "0 translations")],
)
def test_unequal_or_zero_numbers_of_sentences_are_refused(
    hypotheses, references, received
):
    with pytest.raises(UserError, match=f"received {received}"):
        score_translations(hypotheses, references)


def test_bleu_of_a_short_sentence_leaves_out_long_ngrams():
    assert sentence_bleu("a house", "a house") == pytest.approx(100)
    # Precisions of n-grams: 2 of 3, and 1/4 each for the smoothed 0 of 2 and 0 of 1.
    found = sentence_bleu("two | three", "two or three")
    assert found == pytest.approx(100 * (2 / 3 / 4 / 4) ** (1 / 3))
    assert sentence_bleu("", "end") == 0.0


def test_pairwise_bleu_is_that_of_each_pair_of_sentences():
    given = ["a man rides a red bike", "the man rides a bike .", "", "a house"]
    found = pairwise_bleu([*given, given[0]])
    for row, translation in zip(found, [*given, given[0]], strict=True):
        for score, reference in zip(row, [*given, given[0]], strict=True):
            if translation or reference:
                assert score == sentence_bleu(translation, reference)
    assert found[2][2] == 100  # two empty translations are equal
    # The brevity penalty depends on which of the two is the truth.
    assert found[0][3] != found[3][0]
