"""What the address of the attention page names."""

from __future__ import annotations

import html
import time
from urllib.parse import parse_qs, quote

import pytest

from t2t_repro.features.attention_view.sentence_attention import html_page
from tests.support.attention_documents import make_document
from tests.support.browser import PageDriver
from tests.support.waiting import until

pytestmark = pytest.mark.browser

VIEW = "#sentence=2&attention=encoder_self&layer=1&heads=2+4&view=lines&side=key&word=3"

ADDRESS_DELAY = 0.3  # seconds between a choice and its address


class Page(PageDriver):
    """The page of two sentences at an address."""

    def __init__(self, browser, folder):
        super().__init__(browser)
        file = folder / "attention.html"
        documents = [make_document(title=f"sentence {n}", seed=n) for n in (1, 2)]
        file.write_text(html_page(documents, "Attention"), encoding="utf-8")
        self.uri = file.as_uri()

    def open(self, address=""):
        self.browser.get("about:blank")  # Only another document is loaded.
        self.browser.get(self.uri + address)
        until(lambda: self.all("[role=tabpanel] > *"))
        return self

    def address(self):
        hash_ = self.browser.execute_script("return location.hash")
        return {name: text for name, (text,) in parse_qs(hash_[1:]).items()}

    def shown(self):
        pinned = [
            (node.get_attribute("data-side"), int(node.get_attribute("data-index")))
            for node in self.all(".token[aria-pressed=true]")
        ]
        return {
            "sentence": self.all("select[name=sentence]")[0].get_property("value"),
            "chosen": [n.text for n in self.all("fieldset input:checked + span")],
            "heads": [n.text for n in self.all(".chip[aria-pressed=true]")],
            "view": self.all("[aria-selected=true]")[0].text,
            "pinned": pinned,
        }


@pytest.fixture
def page(browser, tmp_path):
    return Page(browser, tmp_path)


OPENING = {
    "sentence": "0",
    "chosen": ["Encoder-decoder attention", "3", "Words"],
    "heads": ["1", "2", "3", "4"],
    "view": "Lines",
    "pinned": [],
}
NAMED = {
    "sentence": "1",
    "chosen": ["Encoder self-attention", "1", "Words"],
    "heads": ["2", "4"],
    "view": "Lines",
    "pinned": [("key", 2)],
}


def test_a_page_opens_without_an_address_or_as_its_address_says(page):
    assert page.open().shown() == OPENING
    assert page.address() == {}
    assert page.open(VIEW).shown() == NAMED


def test_what_is_chosen_can_be_opened_again_by_its_address(page):
    page.open()
    page.click(".layer label:first-child")
    page.click(".words label:last-child")
    page.click("[data-view=heat]")
    page.click(".chip[data-head='2']")
    named = {"layer": "1", "heads": "3", "view": "heat", "tokens": "subwords"}
    until(lambda: named.items() <= page.address().items())
    before = page.shown()
    address = page.browser.execute_script("return location.hash")
    assert page.open(address).shown() == before
    assert before["heads"] == ["3"]


def test_an_address_stays_as_written_until_something_else_is_chosen(page):
    written = "#view=lines&heads=2+4&layer=1&attention=encoder_self&sentence=2"
    page.open(written)
    time.sleep(2 * ADDRESS_DELAY)
    assert page.browser.execute_script("return location.hash") == written
    page.click("[data-view=heat]")
    until(lambda: page.address().get("view") == "heat")
    page.click("[data-view=lines]")
    until(lambda: page.address().get("view") == "lines")


def test_a_link_to_another_view_is_followed(page):
    page.open()
    page.browser.execute_script("location.hash = arguments[0]", VIEW)
    until(lambda: page.shown() == NAMED)
    page.browser.execute_script("history.back()")
    until(lambda: page.shown() == OPENING)


def test_a_chosen_word_is_in_the_address_until_it_is_released(page):
    page.open()
    page.click(".token[data-side=query][data-index='1']")
    until(lambda: page.address().get("word") == "2")
    assert page.address()["side"] == "query"
    page.click(".token[data-side=query][data-index='1']")
    until(lambda: "word" not in page.address())


@pytest.mark.parametrize(
    "address",
    [
        "#",
        "#sentence=9&attention=x&layer=99&heads=77&view=x&side=query&word=999",
        "#sentence=-1&layer=-1&heads=-1&word=-1&side=-1",
        "#sentence=1e3&layer=0&heads=0+0x1+1.5&word=NaN&tokens=",
        "#view=constructor&attention=__proto__&sentence=__proto__&heads=,",
        "#view=toString&__proto__=1&layer=%ff%00&heads=%F0%9F%98%80",
        f"#view={quote('<img src=x onerror=alert(1)>')}&layer={'9' * 5000}",
    ],
)
def test_what_an_address_names_wrongly_is_ignored(page, address):
    assert page.open(address).shown() == OPENING


def test_the_view_works_in_the_frame_of_a_notebook(page, tmp_path):
    document = html_page([make_document()], "Attention")
    notebook = tmp_path / "notebook.html"
    notebook.write_text(
        f'<iframe srcdoc="{html.escape(document)}" sandbox="allow-scripts"></iframe>',
        encoding="utf-8",
    )
    page.browser.get(notebook.as_uri())
    page.browser.switch_to.frame(page.all("iframe")[0])
    until(lambda: page.all(".lines .token"))
    page.click("[data-view=table]")
    until(lambda: page.address().get("view") == "table")
    page.browser.switch_to.default_content()
