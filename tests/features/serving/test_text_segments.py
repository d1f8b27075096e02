"""Texts are split into sentences, and every character of white space is kept."""

from __future__ import annotations

import random
import time

import pytest

from t2t_repro.features.serving.text_segments import SegmentedText


def sentences(text: str, language: str | None = "en") -> list[str]:
    return [sentence.text for sentence in SegmentedText.split(text, language).sentences]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("", "en", []),
        (" \n\t\n", "en", []),
        ("A dog runs", "en", ["A dog runs"]),
        ("Dr. Lee left. Why?  I know!", "en", ["Dr. Lee left.", "Why?", "I know!"]),
        ("Am 3. Mai kam z.B. er. Ja.", "de", ["Am 3. Mai kam z.B. er.", "Ja."]),
        (
            "A title\n\nIt is here\r\nand here.",
            "en",
            ["A title", "It is here", "and here."],
        ),
        ("你好。我是谁。", "zh", ["你好。", "我是谁。"]),
        ("One. Two.", None, ["One.", "Two."]),
        ("One. Two.", "xx-unknown", ["One.", "Two."]),
    ],
)
def test_sentences_are_found(text, language, expected):
    assert sentences(text, language) == expected


def test_texts_are_joined_with_their_white_space():
    text = "  \n A dog.  It runs!\n\n\tNo end"
    found = SegmentedText.split(text, "en")
    assert found.join(["1", "2", "3"]) == "  \n 1  2\n\n\t3"
    assert [s.start for s in found.sentences] == [4, 12, 23]


def test_no_character_is_lost_whatever_the_text():
    # The rules for English fail on such text if white space of several bytes is left.
    alphabet = [
        *" \n\r\t\x0b\x1c\x00.!?\"'()[]*-:;,aAbBIVX1é日。",
        "\u00a0",
        "\u2003",
    ]
    alphabet += ["\u2028", "\U0001f600", "Dr. ", "J. ", "z.B. ", "1) ", "... "]
    choose = random.Random(1)
    for _ in range(4000):
        text = "".join(choose.choices(alphabet, k=choose.randrange(30)))
        found = SegmentedText.split(text, choose.choice(["en", "de", "zh", None]))
        assert found.join([s.text for s in found.sentences]) == text
        for sentence in found.sentences:
            end = sentence.start + len(sentence.text)
            assert text[sentence.start : end] == sentence.text.strip() != ""


@pytest.mark.parametrize("text", ["a" + " " * 50_000 + "b", "a" + "\n" * 50_000])
def test_much_white_space_takes_no_time(text):
    # Everything waits while a text is split; a search took a minute.
    start = time.monotonic()
    assert sentences(text) in (["a"], [text])
    assert time.monotonic() - start < 2
