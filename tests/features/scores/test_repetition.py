from __future__ import annotations

import random

import pytest

from t2t_repro.features.scores.card import DEFINITION, has_loop


def loops_by_definition(text):
    """Look for every loop at every place."""
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("der Mann der Mann der Mann geht", True),
        ("der Mann der Mann geht", False),
        ("very very very good", True),
        ("very, very very good", False),
        ("Co-Mo-Mo-Mo-Mo-Mo.", True),
        ("Co-Mo-Mo-Mo-Mo.", False),
        ("hahahahaha", True),
        ("100000", False),
        ("", False),
        (" a a a ", True),
        ("a b c d e f g h " * 3, True),
        ("a b c d e f g h i " * 3, False),  # nine words
    ],
)
def test_loops_of_small_texts(text, expected):
    assert has_loop(text) is expected


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


def test_a_very_long_text_is_answered_at_once():
    assert not has_loop("".join(chr(0x4E00 + n % 20000) for n in range(200_000)))


def test_the_definition_names_all_limits():
    for part in ("1 to 8 words", "at least 3 times", "2 to 8 characters", "5 times"):
        assert part in DEFINITION
