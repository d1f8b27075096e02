"""Whether the pages can be read: contrast, width and language of every text."""

from __future__ import annotations

import pytest

from t2t_repro.features.attention_view.sentence_attention import html_page
from t2t_repro.features.scores.card import make_card
from t2t_repro.features.scores.card_page import card_page
from tests.support.attention_documents import make_document
from tests.support.waiting import until

pytestmark = pytest.mark.browser

VIEWS = ["lines", "heat", "grid", "table"]
# Contrast (WCAG 2.2) of every visible text with what is painted behind it.
CONTRASTS = """
const context = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
const channels = (colour) => {
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
};
const over = (below, colour, opacity) => {
  const [red, green, blue, alpha] = channels(colour);
  return [red, green, blue].map(
    (value, i) => below[i] + (value - below[i]) * alpha * opacity);
};
const behind = (node) => {
  if (!node) return [255, 255, 255];
  const {backgroundColor, opacity} = getComputedStyle(node);
  return over(behind(node.parentElement), backgroundColor, Number(opacity));
};
const opacityOf = (node) =>
  node ? Number(getComputedStyle(node).opacity) * opacityOf(node.parentElement) : 1;
const luminance = (colour) => {
  const [red, green, blue] = colour.map((value) => value / 255).map(
    (share) => share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const hasText = (node) => node.tagName === "SELECT" || [...node.childNodes].some(
  (child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
const isSeen = (node) => {
  const {width, height} = node.getBoundingClientRect();
  return width > 1 && height > 1 && node.checkVisibility() && node.tagName !== "OPTION";
};
return [...document.body.querySelectorAll("*")]
  .filter((node) => hasText(node) && isSeen(node))
  .map((node) => {
    const {color, fill} = getComputedStyle(node);
    const below = behind(node);
    const text = over(below, node.tagName === "text" ? fill : color, opacityOf(node));
    const [low, high] = [luminance(below), luminance(text)].sort((a, b) => a - b);
    return [(high + 0.05) / (low + 0.05), node.textContent.trim()];
  });
"""
WIDTHS = """
const {scrollWidth, clientWidth} = document.documentElement;
return [scrollWidth, clientWidth];
"""


def unreadable(browser) -> list[list]:
    found = browser.execute_script(CONTRASTS)
    assert len(found) > 20
    return [[ratio, text] for ratio, text in found if ratio < 4.5]


def set_theme(browser, theme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


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

    assert languages(".texts dd") == ["de", "en", "en", ""]  # the last is the score
    assert set(languages(".token[data-side=query] bdi")) == {"en"}
    assert set(languages(".token[data-side=key] bdi")) == {"de"}
    assert set(languages(".ranking li bdi")) == {"de"}
    show(attention_page, "heat")
    assert set(languages(".left .tick bdi")) == {"en"}
    assert set(languages(".top .tick bdi")) == {"de"}
