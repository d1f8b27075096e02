"""The page of `t2t serve` in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser import PageDriver
from tests.support.dictionary_server import DictionaryModel, DictionaryServer
from tests.support.readability import WIDTHS, set_theme, unreadable
from tests.support.waiting import until

pytestmark = pytest.mark.browser

# The first sentence ends beyond U+FFFF, where code points and JavaScript's differ.
TEXT = " A dog \N{DOG FACE} runs. The small cat never sleeps!\n\n  A cat sleeps.\n"
TRANSLATION = (
    " Ein Hund \N{DOG FACE} läuft. Der kleiner Kater schläft nie!\n\n"
    "  Ein Kater schläft.\n"
)
PASTE = """
const [node, text] = arguments;
node.focus();
node.setRangeText(text, node.selectionEnd, node.selectionEnd, "end");
node.dispatchEvent(new InputEvent("input", {bubbles: true}));
"""
# The marks, and the heights of the field and of what lies behind it.
MARKED = """
const [paper] = document.querySelectorAll(".paper");
const field = paper.querySelector("textarea");
const boxes = [...paper.querySelectorAll("mark")].map((mark) => [mark.textContent,
  Number(mark.dataset.share)]);
return [boxes, field.clientHeight, paper.querySelector("#backdrop").clientHeight];
"""


@pytest.fixture
def server():
    with DictionaryServer(DictionaryModel()).running() as server:
        yield server


class Page(PageDriver):
    def __init__(self, browser: Any, address: str):
        super().__init__(browser)
        self.address = address

    def open(self) -> Page:
        self.browser.get(self.address)
        self.browser.execute_script("sessionStorage.clear()")
        self.browser.get(self.address)
        until(lambda: "characters" in self.text("#count"))
        return self

    def paste(self, text: str) -> None:
        self.browser.execute_script(PASTE, self.one("#source"), text)

    def translate(self, text: str, expected: str) -> None:
        self.paste(text)
        self.wait_for(expected)

    def wait_for(self, expected: str) -> None:
        until(lambda: self.text("#output") == expected and not self.all("[aria-busy]"))

    def word(self, text: str) -> Any:
        return next(w for w in self.all(".word") if w.get_property("innerText") == text)

    def hover(self, text: str) -> None:
        self.actions().move_to_element(self.word(text)).perform()

    def marked(self) -> list[list[Any]]:
        marks, field, behind = self.browser.execute_script(MARKED)
        assert field == behind
        return marks

    def options(self) -> list[str]:
        return [o.get_property("textContent") for o in self.all(".option")]

    def focused(self) -> str:
        return self.browser.execute_script("return document.activeElement.textContent")

    def expect_failures(self, *statuses: str) -> None:
        """Take the browser's own lines about failed requests from its console."""
        lines = [entry["message"] for entry in self.browser.get_log("browser")]
        assert len(lines) >= len(statuses)
        assert all(any(s in line for s in statuses) for line in lines)


@pytest.fixture
def page(browser, server) -> Page:
    return Page(browser, server.address).open()


def test_a_text_is_translated_while_it_is_typed_with_its_white_space(page, server):
    page.one("#source").send_keys("A dog runs.")
    page.wait_for("Ein Hund läuft.")
    page.one("#source").send_keys(" A cat")
    page.wait_for("Ein Hund läuft. Ein Kater")
    # One request per pause in typing, not per key.
    assert len(server.asked) <= 4
    page.click("#clear")
    page.translate(TEXT, TRANSLATION)
    assert page.one("#source").get_attribute("lang") == "en"
    assert page.one("#output").get_attribute("lang") == "de"
    assert [page.text("#from"), page.text("#to")] == ["English", "German"]
    until(lambda: page.text("#status") == TRANSLATION)
    assert server.bodies("/translate")[-1] == {
        **{"model": "en-de", "q": TEXT, "format": "text", "stream": True}
    }


def test_sentences_appear_one_by_one_and_a_new_text_ends_the_old_request(browser):
    model = DictionaryModel()
    model.pause = 0.4
    with DictionaryServer(model).running() as server:
        page = Page(browser, server.address).open()
        page.paste("A dog runs. " * 20)
        until(lambda: page.text("#output") == "Ein Hund läuft. Ein Hund läuft. ")
        assert page.all("[aria-busy]")
        model.pause = 0.0
        page.paste("A cat sleeps.")
        page.wait_for("Ein Hund läuft. " * 20 + "Ein Kater schläft.")


def test_another_translation_of_a_sentence_replaces_it_and_stays(page):
    page.translate(TEXT, TRANSLATION)
    page.word("läuft").click()
    until(lambda: len(page.options()) == 4)
    assert page.options()[1] == "Ein Hund \N{DOG FACE} rennt."
    assert page.text(".option[aria-pressed=true]") == "Ein Hund \N{DOG FACE} läuft."
    page.all(".option")[1].click()
    changed = TRANSLATION.replace("läuft", "rennt")
    page.wait_for(changed)
    assert not page.one("#alternatives").is_displayed()
    page.translate("A dog.", f"{changed}Ein Hund.")


def test_the_keyboard_reaches_words_and_alternatives(page):
    from selenium.webdriver.common.keys import Keys

    page.translate(
        "A dog runs. A cat never sleeps.", "Ein Hund läuft. Ein Kater schläft nie."
    )
    page.press(Keys.TAB)
    assert page.focused() == "Copy"
    page.press(Keys.TAB, Keys.ARROW_RIGHT)
    assert page.focused() == "Hund"
    until(lambda: [text for text, _ in page.marked()] == ["dog"])
    until(lambda: "“Hund” attends to dog 1.00" in page.text("#status"))
    page.press(Keys.ENTER)
    until(lambda: page.focused() == "Ein Hund läuft.")
    page.press(Keys.ARROW_DOWN, Keys.ENTER)
    page.wait_for("Ein Hund rennt. Ein Kater schläft nie.")
    assert page.focused() == "Ein"
    page.press(*[Keys.ARROW_RIGHT] * 5)
    assert page.focused() == "schläft"
    until(lambda: [text for text, _ in page.marked()] == ["sleeps."])
    page.press(" ")
    until(lambda: page.focused() == "Ein Kater schläft nie.")
    page.press(Keys.ESCAPE)
    assert not page.one("#alternatives").is_displayed()
    assert page.focused() == "Ein"
    page.press(Keys.TAB)
    assert page.focused() == "Alternatives"


def test_pointing_at_a_word_marks_the_source_words_that_it_attends_to(page, server):
    page.translate(TEXT, TRANSLATION)
    page.hover("schläft")
    until(page.marked)
    assert page.marked() == [["sleeps!", pytest.approx(1, abs=0.02)]]
    assert "layer 2, head 3" in page.text("#readout")
    page.hover("nie")
    until(lambda: [text for text, _ in page.marked()] == ["never"])
    assert server.bodies("/attention") == [
        {
            "model": "en-de",
            "q": "The small cat never sleeps!",
            "translation": "Der kleiner Kater schläft nie!",
        }
    ]
    page.hover("läuft")
    until(lambda: [text for text, _ in page.marked()] == ["runs."])
    page.actions().move_to_element(page.one("h1")).perform()
    until(lambda: page.marked() == [])


def test_all_heads_of_a_sentence_open_below_in_the_theme_of_the_page(page):
    page.translate("A dog runs.", "Ein Hund läuft.")
    page.click("#theme")
    page.click("#heads")
    until(lambda: page.all("#view .grid .small"))
    assert page.text("#view .texts dd") == "A dog runs."
    themes = [n.get_attribute("data-theme") for n in page.all(".t2t-attention")]
    assert themes[0] == themes[1] != ""
    page.click("#heads")
    assert not page.all("#view .grid")


def test_a_model_without_attention_is_chosen_from_several(browser):
    models = DictionaryModel(), DictionaryModel("de-en", shows_attention=False)
    with DictionaryServer(*models).running() as server:
        page = Page(browser, server.address).open()
        page.translate("A dog.", "Ein Hund.")
        options = [o.get_property("textContent") for o in page.all("#model option")]
        assert options == ["English → German", "German → English"]
        page.all("#model option")[1].click()
        until(lambda: server.asked[-1][1]["model"] == "de-en")
        page.wait_for("Ein Hund.")
    assert not page.one("#heads").is_displayed()
    assert page.text("#from") == "German"
    page.hover("Hund")
    assert page.text("#readout") == ""


def test_markup_is_text_in_every_place(page):
    text = "<script>alert(1)</script> <b>dog</b> &amp; \0\u202e."
    page.translate(text, text.replace("dog", "Hund"))
    page.word("Hund").click()
    until(page.options)
    assert "<b>Vierbeiner</b>" in page.options()[1]
    assert text in page.text("#about")
    page.hover("Hund")
    until(page.marked)
    page.click("#heads")
    until(lambda: page.all("#view .grid .small"))
    assert page.text("#view .texts dd") == text
    assert not page.all("main script, main b:not(#view b)")


def test_a_busy_server_is_asked_again_when_it_says_so(page, server):
    server.failures = [(429, {"Retry-After": "1"}, "received too many requests.")]
    page.paste("A dog.")
    until(lambda: page.text("#error") == "The server is busy. Trying again in 1 s.")
    page.wait_for("Ein Hund.")
    assert not page.one("#error").is_displayed()
    page.expect_failures("429")


def test_an_api_key_is_asked_for_and_kept_for_the_tab(browser):
    with DictionaryServer(DictionaryModel(), keys=["right"]).running() as server:
        page = Page(browser, server.address).open()
        assert page.one("#form").is_displayed()
        page.paste("A dog.")
        until(lambda: server.asked)
        page.one("#key").send_keys("wrong\n")
        until(lambda: page.text("#error") == "The server refuses this API key.")
        page.one("#key").send_keys("right\n")
        page.wait_for("Ein Hund.")
        assert not page.one("#form").is_displayed()
        assert not page.one("#error").is_displayed()
        page.expect_failures("401")
        page.browser.get(page.address)
        page.translate("A cat.", "Ein Kater.")
    assert not page.one("#form").is_displayed()


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        ((400, {}, "received <b>, expected text"), "Received <b>, expected text."),
        ((500, {}, ""), "The server answered with status 500."),
        (None, "The connection ended before the translation."),
    ],
)
def test_a_failure_is_one_sentence_until_the_next_text(page, server, failure, sentence):
    if failure:
        server.failures = [failure]
    else:
        server.breaks = True
    page.paste("A dog runs. A cat sleeps.")
    until(lambda: page.text("#error") == sentence)
    page.translate("..", "Ein Hund läuft. Ein Kater schläft...")
    assert not page.one("#error").is_displayed()
    page.expect_failures(*([str(failure[0])] if failure else []))


def test_a_text_over_the_limit_is_not_sent(browser):
    with DictionaryServer(DictionaryModel(), max_characters=5).running() as server:
        page = Page(browser, server.address).open()
        page.paste("\N{DOG FACE}" * 6)
        until(lambda: "at most 5 characters" in page.text("#error"))
    assert page.text("#count") == "6 of 5 characters"
    assert server.asked == []


def test_a_server_of_small_beams_offers_fewer_translations(browser):
    with DictionaryServer(DictionaryModel(), max_beam_size=2).running() as server:
        page = Page(browser, server.address).open()
        page.translate("A dog runs.", "Ein Hund läuft.")
        page.word("läuft").click()
        until(lambda: len(page.options()) >= 2)
        browser.get("about:blank")  # ends what the page still asks for
    assert server.bodies("/translate")[-1]["alternatives"] == 1


def test_a_server_that_is_gone_is_missed_and_found_again(browser):
    with DictionaryServer(DictionaryModel()).running() as server:
        page = Page(browser, server.address).open()
    page.paste("A dog.")
    until(lambda: "The server does not answer." in page.text("#error"))
    page.expect_failures("ERR_CONNECTION_REFUSED")
    port = int(server.address.rpartition(":")[2])
    with DictionaryServer(DictionaryModel()).running(port):
        page.translate(" A", "Ein Hund. Ein")
    assert not page.one("#error").is_displayed()


def test_the_translation_is_copied_without_the_clipboard_of_secure_pages(page):
    page.translate(TEXT, TRANSLATION)
    page.browser.execute_script(
        "addEventListener('copy', () => globalThis.copied = String(getSelection())"
        " || document.activeElement.value);"
        "Object.defineProperty(navigator, 'clipboard', {value: undefined})"
    )
    page.click("#copy")
    until(lambda: page.text("#copy") == "Copied")
    assert page.browser.execute_script("return copied") == TRANSLATION


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_has_enough_contrast_and_320_pixels_suffice(page, set_width, theme):
    set_theme(page.browser, theme)
    page.translate(TEXT + "Donau" * 40, TRANSLATION + "Donau" * 40)
    page.word("läuft").click()
    until(page.options)
    page.hover("schläft")
    until(page.marked)
    assert unreadable(page.browser) == []
    set_width(320)
    page.click("#heads")
    until(lambda: page.all("#view .grid .small"))
    wanted, available = page.browser.execute_script(WIDTHS)
    assert wanted <= available
