from __future__ import annotations

import pytest
import sacrebleu

from t2t_repro.features.scores.word_bands import scores_by_length


def words(count):
    return " ".join(f"w{n}" for n in range(count))


def test_limits_belong_to_the_shorter_band():
    lengths = [0, 5, 6, 10, 11, 15, 16, 20, 21, 30, 31, 40, 41, 60, 61, 900]
    texts = [*map(words, lengths)]
    bands = scores_by_length(texts, texts, texts)
    assert [(b.label, b.sentences) for b in bands] == [
        ("0-5", 2),
        ("6-10", 2),
        ("11-15", 2),
        ("16-20", 2),
        ("21-30", 2),
        ("31-40", 2),
        ("41-60", 2),
        ("61+", 2),
    ]


def test_each_band_has_the_scores_of_its_own_sentences():
    measured = [words(7), words(3), words(8)]
    hypotheses = ["the cat sat on a mat", "a", "one two three four five"]
    references = ["the cat sat on the mat", "b", "one two three four six seven"]
    short, long = scores_by_length(measured, hypotheses, references)
    assert (short.label, short.sentences, short.bleu) == ("0-5", 1, 0)
    streams = hypotheses[::2], [references[::2]]
    expected = sacrebleu.corpus_bleu(*streams)
    assert long.bleu == pytest.approx(expected.score)
    assert long.chrf == pytest.approx(sacrebleu.corpus_chrf(*streams).score)
    assert long.length_ratio == pytest.approx(11 / 12)


def test_empty_bands_are_left_out():
    (band,) = scores_by_length([words(12)], ["a"], ["a"])
    assert (band.shortest, band.longest) == (11, 15)


def test_empty_references_do_not_divide_by_zero():
    (band,) = scores_by_length([""], ["a"], [""])
    assert band.length_ratio == 1
