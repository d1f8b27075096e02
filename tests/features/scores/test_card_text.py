from __future__ import annotations

import dataclasses
import unicodedata

import pytest

from t2t_repro.features.scores.card import make_card
from t2t_repro.features.scores.card_text import card_lines, shortened, wrapped
from t2t_repro.text_tables import printable

HYPOTHESES = ["das Haus ist rot", "no no no", "漢字" * 90, "x" * 700, ""]
REFERENCES = ["das Haus ist rot", "ja", "漢字" * 90, "y " * 350, "z"]
SOURCES = ["the house is red", "yes", "kanji", "letters", "empty"]


@pytest.fixture(scope="module")
def card():
    return make_card(HYPOTHESES, REFERENCES, SOURCES)


def columns(line):
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line)


def test_no_line_is_wider_than_100_columns(card):
    assert max(map(columns, card_lines(card))) <= 100


def test_every_score_is_there_with_signature_and_meaning(card):
    lines = [line.strip() for line in card_lines(card)]
    text = " ".join(lines)
    for score in card.scores:
        assert (score.signature or score.missing) in lines
        assert score.meaning in text
        if score.value is not None:
            row = next(line for line in lines if line.startswith(score.label))
            assert f"{score.value:.2f}" in row


def test_a_missing_score_says_why(card):
    missing = dataclasses.replace(
        card.scores[4], value=None, signature=None, missing="not here"
    )
    changed = dataclasses.replace(card, scores=(missing, *card.scores[:1]))
    lines = card_lines(changed)
    assert lines[1].startswith(f"  {missing.label}")
    assert "    not here" in lines


def test_counts_of_outputs_have_their_labels(card):
    lines = [" ".join(line.split()) for line in card_lines(card)]
    assert "sentences 5" in lines
    assert "copies of the source 0 (references: 0)" in lines
    assert "empty 1 (references: 0)" in lines
    assert "with a repetition loop 3 (references: 2)" in lines
    assert "equal to the reference 2" in lines


def test_copies_are_not_mentioned_without_sources():
    text = "\n".join(card_lines(make_card(["a"], ["a"])))
    assert "copies" not in text
    assert "By reference length" in text
    assert "source  " not in text


def test_empty_outputs_are_visible(card):
    assert any(line.endswith("output     (empty)") for line in card_lines(card))


def test_characters_that_control_a_terminal_are_replaced():
    assert printable("a\x1b[2J\x07\u202eb\ud800\u0085\tc") == "a�[2J��b���c"
    assert printable("Ärger 漢字 🙂 שלום e\u0301") == "Ärger 漢字 🙂 שלום e\u0301"


def test_long_texts_are_cut_and_say_so():
    assert shortened("a" * 300) == "a" * 300
    assert shortened("a" * 1300) == "a" * 300 + "... (1,000 more characters)"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 8, ["one two", "three"]),
        ("abcdefgh ij", 3, ["abc", "def", "gh", "ij"]),
        ("漢字漢字", 4, ["漢字", "漢字"]),
        ("漢字漢字", 5, ["漢字", "漢字"]),
        ("a 漢字 b", 6, ["a 漢字", "b"]),
        ("", 10, ["(empty)"]),
        ("  ", 10, ["(empty)"]),
    ],
)
def test_texts_are_wrapped_by_their_width_on_a_terminal(text, width, lines):
    assert wrapped(text, width) == lines
