from __future__ import annotations

import pytest
import sacrebleu

from t2t_repro.features.scores.card import (
    best_and_worst,
    histogram,
    sentence_scores,
)

HYPOTHESES = ["the cat", "a dog sat", "", "the house is red"]
REFERENCES = ["the cat", "a dog sits here", "x", "the house is green"]


def lines(examples):
    return [example.line for example in examples]


def chosen(scores, count, references=None):
    references = references or ["r"] * len(scores)
    best, worst = best_and_worst(scores, ["h"] * len(scores), references, None, count)
    return lines(best), lines(worst)


def test_scores_are_those_of_sacrebleu():
    expected = [
        sacrebleu.sentence_chrf(h, [r]).score
        for h, r in zip(HYPOTHESES, REFERENCES, strict=True)
    ]
    assert sentence_scores(HYPOTHESES, REFERENCES) == pytest.approx(expected)


def test_the_best_are_best_first_and_the_worst_are_worst_first():
    assert chosen([30, 10, 50, 20, 40], 2) == ([3, 5], [2, 4])


def test_no_sentence_is_among_the_best_and_the_worst():
    assert chosen([30, 10, 20], 5) == ([1, 3], [2])
    assert chosen([30], 5) == ([1], [])


def test_of_equal_scores_the_longer_reference_comes_first_then_the_earlier_line():
    references = ["a", "bbb", "cc", "dd", "e"]
    assert chosen([7] * 5, 2, references) == ([4, 1], [2, 3])


def test_an_example_has_its_own_texts_and_scores():
    sources = ["s1", "s2", "s3", "s4"]
    scores = sentence_scores(HYPOTHESES, REFERENCES)
    best, worst = best_and_worst(scores, HYPOTHESES, REFERENCES, sources, 1)
    (first,), (last,) = best, worst
    assert (first.line, first.source, first.hypothesis) == (1, "s1", "the cat")
    assert (first.chrf, first.bleu) == pytest.approx((100, 100))
    assert (last.line, last.source, last.reference) == (3, "s3", "x")
    assert (last.hypothesis, last.chrf, last.bleu) == ("", 0, 0)


def test_the_histogram_has_ten_bins_and_100_is_in_the_last():
    scores = [0, 9.99, 10, 55, 89.9, 90, 100, 100.0000001]
    assert histogram(scores) == (2, 1, 0, 0, 0, 1, 0, 0, 1, 3)
