from __future__ import annotations

from collections import Counter

import pytest

from t2t_repro.features.scores.word_bands import count_words, words_by_frequency

COUNTS = {"rare": 1, "few": 2, "nine": 9, "ten": 10, "many": 99, "more": 100}
COUNTS |= {"most": 999, "the": 1000}


def measured(hypotheses, references):
    return {
        band.label: (band.in_references, band.in_hypotheses, band.found)
        for band in words_by_frequency(hypotheses, references, COUNTS)
    }


def test_every_word_is_in_the_band_of_its_frequency():
    assert measured(["new " + " ".join(COUNTS)], ["x"]) == {
        "0": (1, 1, 0),  # x; new
        "1": (0, 1, 0),
        "2-9": (0, 2, 0),
        "10-99": (0, 2, 0),
        "100-999": (0, 2, 0),
        "1000+": (0, 1, 0),
    }


def test_a_word_is_found_as_often_as_it_is_on_both_sides_of_a_sentence():
    # "the" 3 and 2 times, then 0 and 1 times, then 1 and 1 times: 2 + 0 + 1.
    hypotheses = ["the the the", "rare", "the few"]
    references = ["the the", "the rare", "few the few"]
    assert measured(hypotheses, references) == {
        "1": (1, 1, 1),
        "2-9": (2, 1, 1),
        "1000+": (4, 4, 3),
    }


def test_recall_and_precision_are_percentages():
    (band,) = words_by_frequency(["a a a"], ["a a"], {"a": 1})
    assert band.recall == 100
    assert band.precision == pytest.approx(100 * 2 / 3)


def test_without_words_there_is_no_percentage():
    (unknown,) = words_by_frequency(["a"], [""], {})
    assert (unknown.recall, unknown.precision) == (None, 0)
    (missed,) = words_by_frequency([""], ["a"], {})
    assert (missed.recall, missed.precision) == (0, None)
    assert words_by_frequency([""], [""], {}) == ()


def test_words_are_tokens_with_case_and_without_punctuation():
    expected = Counter(["Das", "Haus", ",", "das", "Haus", "."])
    assert count_words(["Das Haus, das", "Haus."]) == expected
