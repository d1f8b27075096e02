"""Whether the pages can be read: contrast, width and language of every text."""

from __future__ import annotations

import pytest

from t2t_repro.features.attention_view.sentence_attention import html_page
from t2t_repro.features.scores.card import make_card
from t2t_repro.features.scores.card_page import card_page
from tests.support.attention_documents import make_document
from tests.support.readability import WIDTHS, set_theme, unreadable
from tests.support.waiting import until

pytestmark = pytest.mark.browser

VIEWS = ["lines", "heat", "grid", "table"]


def show(browser, view: str) -> None:
    browser.find_element("css selector", f"[role=tab][data-view={view}]").click()


@pytest.fixture
def attention_page(browser, tmp_path):
    """Return a browser that shows the page of a model with more heads than colors."""
    file = tmp_path / "attention.html"
    document = make_document(heads=12)
    languages = {"source": "de", "target": "en", "read": "en"}
    for name, language in languages.items():
        document["sequences"][name]["lang"] = language
    file.write_text(html_page([document], "a_long_name_of_a_set on a_problem"))
    browser.get(file.as_uri())
    until(lambda: browser.find_elements("css selector", ".lines .token"))
    return browser


@pytest.fixture
def card_opened(browser, tmp_path):
    file = tmp_path / "card.html"
    card = make_card(["ein Haus", "y"], ["ein Haus", "der Hund"], ["a", "the dog"])
    file.write_text(card_page(card, "A card"), encoding="utf-8")
    browser.get(file.as_uri())
    return browser


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_text_of_the_attention_page_has_enough_contrast(
    attention_page, theme, view
):
    set_theme(attention_page, theme)
    attention_page.find_element("css selector", ".words label:last-child").click()
    show(attention_page, view)
    assert unreadable(attention_page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_that_fade_beside_a_chosen_one_can_still_be_read(attention_page, theme):
    set_theme(attention_page, theme)
    attention_page.find_element("css selector", ".token").click()
    assert unreadable(attention_page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_of_the_card_has_enough_contrast(card_opened, theme):
    set_theme(card_opened, theme)
    assert unreadable(card_opened) == []


@pytest.mark.parametrize("view", VIEWS)
def test_the_attention_page_fits_into_320_pixels(attention_page, set_width, view):
    set_width(320)
    show(attention_page, view)
    wanted, available = attention_page.execute_script(WIDTHS)
    assert wanted <= available


def test_every_text_and_token_names_its_language(attention_page):
    def languages(css):
        return attention_page.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.lang)",
            css,
        )

    assert languages(".texts dd") == ["de", "en", ""]  # the last is the score
    assert set(languages(".token[data-side=query] bdi")) == {"en"}
    assert set(languages(".token[data-side=key] bdi")) == {"de"}
    assert set(languages(".ranking li bdi")) == {"de"}
    show(attention_page, "heat")
    assert set(languages(".left .tick bdi")) == {"en"}
    assert set(languages(".top .tick bdi")) == {"de"}
