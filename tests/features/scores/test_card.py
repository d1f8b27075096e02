from __future__ import annotations

import dataclasses
import json

import pytest
import sacrebleu

from t2t_repro.errors import UserError
from t2t_repro.features.scores.card import Faults, make_card
from t2t_repro.features.scores.card_text import card_lines
from t2t_repro.features.scores.word_bands import WordCounts

# Line by line: a copy; a copy in both; empty; a loop; equal to the reference; an empty
# reference; a loop in the reference.
SOURCES = ["a copy", "Oslo", "one", "two", "three", "four", "la la la", "Rome", "Bonn"]
HYPOTHESES = ["a  copy", "Oslo", "", "no no no", "drei", "vier", "so", "Rome", ""]
REFERENCES = ["eine Kopie", "Oslo", "eins", "zwei", "drei", "", "la la la", "Rom", " "]


@pytest.fixture(scope="module")
def card():
    return make_card(HYPOTHESES, REFERENCES, SOURCES)


def test_suspicious_sentences_are_counted_beside_the_references(card):
    assert card.faults == Faults(
        copies=3,
        copies_in_references=2,
        empty=2,
        empty_references=2,
        loops=1,
        loops_in_references=1,
        identical=2,
    )


def test_every_count_is_of_its_own_kind():
    hypotheses = ["s1", "s2", "s3", "s4", "", "", "", "o o o", "o o o"]
    references = ["s1", "s2", "s3", "r", "r", "r", "", "la la la", "r"]
    sources = ["s1", "s2", "s3", "s4", "x", "x", "x", "x", "x"]
    assert make_card(hypotheses, references, sources).faults == Faults(
        4, 3, 3, 1, 2, 1, 3
    )


def test_without_sources_copies_are_unknown_and_references_are_measured():
    card = make_card(["a b c d e f g"], ["a b c"])
    assert (card.faults.copies, card.faults.copies_in_references) == (None, None)
    assert (card.length_of, card.by_length[0].label) == ("reference", "0-5")
    assert card.best[0].source is None


def test_with_sources_their_lengths_are_measured():
    card = make_card(["a"], ["a b c"], ["a b c d e f g"])
    assert (card.length_of, card.by_length[0].label) == ("source", "6-10")


def test_training_words_decide_the_bands():
    words = WordCounts({"drei": 5}, "the training text (17 pairs)")
    card = make_card(["drei"], ["drei"], training_words=words)
    assert card.counted_in == "the training text (17 pairs)"
    assert [band.label for band in card.by_frequency] == ["2-9"]


def test_without_training_words_the_references_are_counted():
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


def test_the_language_reaches_mosess_tokenizer():
    pytest.importorskip("sacremoses", reason="sacremoses is not installed")
    card = make_card(["l'eau"], ["l'eau"], language="fr")
    assert card.language == "fr"
    scores = {score.name: score for score in card.scores}
    assert "tok:moses-fr-atat" in scores["bleu_paper"].signature


def test_the_number_of_examples_can_be_chosen():
    card = make_card(HYPOTHESES, REFERENCES, examples=2)
    assert (len(card.best), len(card.worst)) == (2, 2)


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


def test_empty_references_have_no_length_ratio():
    assert make_card(["a"], [""]).length_ratio is None


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
