"""The score card in a real browser."""

from __future__ import annotations

import pytest

from t2t_repro.features.scores.card import make_card
from t2t_repro.features.scores.card_page import card_page
from tests.support.waiting import until

pytestmark = pytest.mark.browser

HYPOTHESES = ["das Haus", "مرحبا بالعالم", "x" * 900]
REFERENCES = ["ein Haus", "مرحبا بالعالم", "y" * 900]
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"


@pytest.fixture
def opened(browser, tmp_path):
    file = tmp_path / "card.html"
    page = card_page(make_card(HYPOTHESES, REFERENCES), "A card")
    file.write_text(page, encoding="utf-8")
    browser.get(file.as_uri())
    return browser


def test_right_to_left_text_starts_at_the_right(opened):
    direction = opened.execute_script(
        "return [...document.querySelectorAll('dd.output')].map("
        "(e) => getComputedStyle(e).direction)"
    )
    assert sorted(direction) == ["ltr", "ltr", "rtl"]


@pytest.mark.parametrize("width", [1200, 320])
def test_nothing_is_wider_than_the_window(opened, set_width, width):
    set_width(width)
    widest = opened.execute_script("return document.documentElement.scrollWidth")
    assert widest <= width


def test_the_page_follows_the_readers_choice_of_light_or_dark(opened):
    colors = {"light": "rgb(244, 245, 247)", "dark": "rgb(14, 16, 20)"}
    for scheme, color in colors.items():
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        until(lambda color=color: opened.execute_script(BACKGROUND) == color)
