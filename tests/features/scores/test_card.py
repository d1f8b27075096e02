from __future__ import annotations

import dataclasses
import json
import random

import pytest
import sacrebleu

from t2t_repro.errors import UserError
from t2t_repro.features.scores.card import (
    Faults,
    best_and_worst,
    has_loop,
    histogram,
    make_card,
    sentence_scores,
)
from t2t_repro.features.scores.card_text import card_lines
from t2t_repro.features.scores.word_bands import WordCounts

# Three copies in both and one more in the translations; three empty translations and
# one empty reference; two loops in the translations and one in the references.
SOURCES = ["a copy", "Oslo", "Rom", "Bonn", "one", "two", "three", "four", "five"]
HYPOTHESES = ["a  copy", "Oslo", "Rom", "Bonn", "", " ", "", "no no no", "o o o"]
REFERENCES = ["a copy ", "Oslo", "Rom", "B", "eins", "zwei", "\n", "la la la", "fünf"]


@pytest.fixture(scope="module")
def card():
    return make_card(HYPOTHESES, REFERENCES, SOURCES)


def test_suspicious_sentences_are_counted_beside_the_references(card):
    assert card.faults == Faults(
        copies=4,
        copies_in_references=3,
        empty=3,
        empty_references=1,
        loops=2,
        loops_in_references=1,
        identical=3,
    )


def test_without_sources_copies_are_unknown_and_references_are_measured():
    card = make_card(["a b c d e f g"], ["a b c"])
    assert (card.faults.copies, card.faults.copies_in_references) == (None, None)
    assert (card.length_of, card.by_length[0].label) == ("reference", "0-5")
    assert card.best[0].source is None
    card = make_card(["a"], ["a b c"], ["a b c d e f g"])
    assert (card.length_of, card.by_length[0].label) == ("source", "6-10")


def test_training_words_decide_the_bands():
    words = WordCounts({"drei": 5}, "the training text (17 pairs)")
    card = make_card(["drei"], ["drei"], training_words=words)
    assert card.counted_in == "the training text (17 pairs)"
    assert [band.label for band in card.by_frequency] == ["2-9"]
    card = make_card(["drei", "x"], ["drei", "drei"])
    assert card.counted_in == "the references"
    assert [band.label for band in card.by_frequency] == ["0", "2-9"]


def test_the_length_ratio_is_that_of_sacrebleu(card):
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES])
    assert (card.hypothesis_words, card.reference_words) == (
        expected.sys_len,
        expected.ref_len,
    )
    assert card.length_ratio == pytest.approx(expected.sys_len / expected.ref_len)
    assert make_card(["a"], [""]).length_ratio is None


def test_the_language_reaches_mosess_tokenizer():
    pytest.importorskip("sacremoses", reason="sacremoses is not installed")
    card = make_card(["l'eau"], ["l'eau"], language="fr")
    assert card.language == "fr"
    scores = {score.name: score for score in card.scores}
    assert "tok:moses-fr-atat" in scores["bleu_paper"].signature


def test_the_card_is_json_with_the_derived_values(card):
    values = json.loads(json.dumps(card.to_json(), allow_nan=False))
    assert values["length_ratio"] == card.length_ratio
    assert values["scores"][0] == dataclasses.asdict(card.scores[0])
    assert [band["recall"] for band in values["by_frequency"]] == [
        band.recall for band in card.by_frequency
    ]
    assert values["by_frequency"][0]["precision"] == card.by_frequency[0].precision
    assert sum(values["chrf_histogram"]) == card.sentences == len(SOURCES)


@pytest.mark.parametrize(
    ("hypotheses", "references", "sources"),
    [
        ([""], [""], [""]),
        (["", "", ""], ["a b c d e", "b", "c"], ["x", "y", "z"]),
        (["a"], [""], None),
        (["one sentence"], ["one sentence"], ["one sentence"]),
        (["\x00\u202e<script>"], ["\ud800"], ["\x1b[2J"]),
    ],
)
def test_unusual_texts_have_a_card(hypotheses, references, sources):
    card = make_card(hypotheses, references, sources)
    assert json.dumps(card.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((0, 0, 0), "received 0 translations and 0 references"),
        ((2, 1, 2), "received 2 translations and 1 reference,"),
        ((2, 2, 3), "received 2 translations and 3 sources"),
    ],
)
def test_unequal_numbers_of_sentences_are_refused(counts, message):
    with pytest.raises(UserError, match=message):
        make_card(*(["a"] * count for count in counts))


def test_a_card_of_text_without_spaces_counts_the_tokens_of_its_tokenizer():
    texts = ["狗猫看见树。", "猫看见一棵大树。"]
    card = make_card(texts, texts)
    assert card.tokenizer == "zh"
    scores = {score.name: score for score in card.scores}
    assert scores["bleu_zh"].value == pytest.approx(100)
    assert "tok:zh" in scores["bleu_zh"].signature
    assert "case:lc" in scores["bleu_zh_lc"].signature
    assert not {"bleu_13a", "bleu_intl", "bleu_paper"} & scores.keys()
    assert card.reference_words == sum(map(len, texts))
    assert [band.label for band in card.by_length] == ["6-10"]
    assert [band.recall for band in card.by_frequency] == [100, 100]
    assert "BLEU zh" in " ".join(card_lines(card))
    given = make_card(["a b c d"], ["a b c d"], tokenizer="intl")
    assert given.tokenizer == "intl"


def loops_by_definition(text):
    words = text.split()
    return any(
        words[start : start + n] * 3 == words[start : start + 3 * n]
        for n in range(1, 9)
        for start in range(len(words) - 3 * n + 1)
    ) or any(
        word[start : start + n] * 5 == word[start : start + 5 * n]
        for word in words
        for n in range(2, 9)
        for start in range(len(word) - 5 * n + 1)
    )


def test_loops_are_found_by_trying_every_place():
    generator = random.Random(3)
    found = []
    for _ in range(3000):
        words = generator.choices(("a", "b", "ab", "abab"), k=generator.randrange(28))
        joiner = generator.choice(("", " ", " "))
        text = joiner.join(words)
        found.append(has_loop(text))
        assert found[-1] == loops_by_definition(text), text
    assert 500 < sum(found) < 2500


def test_a_loop_has_at_most_eight_words():
    assert has_loop("a b c d e f g h " * 3)
    assert not has_loop("a b c d e f g h i " * 3)


def test_a_very_long_text_is_answered_at_once():
    assert not has_loop("".join(chr(0x4E00 + n % 20000) for n in range(200_000)))


FOUR = ["the cat", "a dog sat", "", "the house is red"]
FOUR_TRUE = ["the cat", "a dog sits here", "x", "the house is green"]


@pytest.mark.parametrize(
    ("scores", "count", "references", "best", "worst"),
    [
        ([30, 10, 50, 20, 40], 2, None, [3, 5], [2, 4]),
        # No sentence is among both.
        ([30, 10, 20], 5, None, [1, 3], [2]),
        ([30], 5, None, [1], []),
        # Of equal scores, the longer reference comes first, then the earlier line.
        ([7] * 5, 2, ["a", "bbb", "cc", "dd", "e"], [4, 1], [2, 3]),
    ],
)
def test_the_best_are_best_first_and_the_worst_are_worst_first(
    scores, count, references, best, worst
):
    references = references or ["r"] * len(scores)
    found = best_and_worst(scores, ["h"] * len(scores), references, None, count)
    assert [[x.line for x in examples] for examples in found] == [best, worst]


def test_an_example_has_its_own_texts_and_scores():
    sources = ["s1", "s2", "s3", "s4"]
    scores = sentence_scores(FOUR, FOUR_TRUE)
    best, worst = best_and_worst(scores, FOUR, FOUR_TRUE, sources, 1)
    (first,), (last,) = best, worst
    assert (first.line, first.source, first.hypothesis) == (1, "s1", "the cat")
    assert (first.chrf, first.bleu) == pytest.approx((100, 100))
    assert (last.line, last.source, last.reference) == (3, "s3", "x")
    assert (last.hypothesis, last.chrf, last.bleu) == ("", 0, 0)


def test_the_histogram_has_ten_bins_and_100_is_in_the_last():
    scores = [0, 9.99, 10, 55, 89.9, 90, 100, 100.0000001]
    assert histogram(scores) == (2, 1, 0, 0, 0, 1, 0, 0, 1, 3)
