from __future__ import annotations

import dataclasses
import itertools
import re

import pytest

from t2t_repro.features.scores.card import make_card
from t2t_repro.features.scores.card_page import Columns, card_page, column_chart
from tests.support.html_elements import Elements

HOSTILE = "<script>alert(1)</script> \"' & </dd></section> \x1b[2J \x00 \ud800"
ARABIC = "مرحبا بالعالم"


@pytest.fixture(scope="module")
def card():
    hypotheses = ["das Haus ist rot", HOSTILE, ARABIC, ""]
    references = ["das Haus ist grün", "b", ARABIC, "leer"]
    return make_card(hypotheses, references, ["the house", HOSTILE, "hello", "empty"])


@pytest.fixture(scope="module")
def page(card):
    return card_page(card, f"Card of {HOSTILE}")


def test_texts_are_escaped_and_every_element_is_closed(page):
    elements = Elements(page)
    assert elements.open == []
    assert page.encode("utf-8")
    assert "script" not in {tag for tag, *_ in elements.found}
    shown = HOSTILE.replace("\x1b", "�").replace("\x00", "�").replace("\ud800", "�")
    assert shown in elements.texts("dd", "output")
    assert shown in elements.texts("dd", "source")
    assert elements.texts("title") == elements.texts("h1") == [f"Card of {shown}"]


def test_the_page_loads_nothing(page):
    elements = Elements(page)
    loading = {"src", "href", "style", "onclick", "onload", "xlink:href"}
    assert not [1 for _, attributes, _ in elements.found if loading & attributes.keys()]
    assert "url(" not in page
    assert "@import" not in page
    policies = [a["content"] for t, a, _ in elements.found if "http-equiv" in a]
    assert policies[0].startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_texts_run_in_their_own_direction(page):
    examples = [
        attributes
        for tag, attributes, _ in Elements(page).found
        if tag == "dd" and attributes.get("class") in ("source", "reference", "output")
    ]
    assert len(examples) == 4 * 3
    assert {attributes["dir"] for attributes in examples} == {"auto"}
    assert ARABIC in Elements(page).texts("dd", "output")


def test_texts_name_their_language_where_it_is_known(card):
    german = dataclasses.replace(card, language="de")
    for shown, languages in (
        (card_page(card, "t"), {None}),
        (card_page(german, "t", "en"), {"de", "en"}),
    ):
        found = {
            (attributes["class"], attributes.get("lang"))
            for tag, attributes, _ in Elements(shown).found
            if tag == "dd" and "class" in attributes
        }
        assert {language for _, language in found} == languages
        assert len(found) == 3
    assert found == {("source", "en"), ("reference", "de"), ("output", "de")}


def test_every_score_has_a_row_with_signature(page, card):
    elements = Elements(page)
    assert elements.texts("th") == [score.label for score in card.scores]
    for score in card.scores:
        assert (score.signature or score.missing) in elements.texts("code")
        assert ("-" if score.value is None else f"{score.value:.2f}") in (
            elements.texts("td")
        )


def test_charts_show_the_numbers_of_the_card(page, card):
    elements = Elements(page)
    labels, values = (
        elements.texts("text", "label"),
        elements.texts("text", "value"),
    )
    for band in card.by_length:
        assert band.label in labels
        assert f"{band.bleu:.1f}" in values
    for band in card.by_frequency:
        assert band.label in labels
        assert band.recall is None or f"{band.recall:.1f}" in values
    assert [str(n) for n in card.chrf_histogram] == values[-10:]


def test_no_column_leaves_the_chart(page):
    for attributes, _ in Elements(page).all("rect"):
        top, height = float(attributes["y"]), float(attributes["height"])
        assert 0 <= top <= top + height <= 230


def test_a_missing_score_is_not_a_column(card):
    scores = tuple(
        dataclasses.replace(s, value=None, signature=None, missing="not here")
        if s.name == "bleu_paper"
        else s
        for s in card.scores
    )
    elements = Elements(card_page(dataclasses.replace(card, scores=scores), "t"))
    assert "of the papers" not in elements.texts("text", "label")
    assert "not here" in elements.texts("code")


def rectangles(chart):
    pattern = r'class="series(\d)" x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"'
    return [tuple(map(float, found)) for found in re.findall(pattern, chart)]


def test_heights_are_in_proportion_and_end_on_one_floor():
    groups = [Columns("a", "", (10.0,)), Columns("b", "", (40.0,))]
    (_, _, y1, _, h1), (_, _, y2, _, h2) = rectangles(column_chart("t", groups, 40))
    assert h2 == pytest.approx(4 * h1, abs=0.3)
    assert y1 + h1 == pytest.approx(y2 + h2, abs=0.2)


def test_columns_follow_each_other_without_overlap():
    groups = [Columns(str(n), "", (1.0, 2.0)) for n in range(5)]
    found = rectangles(column_chart("t", groups, 2))
    assert [series for series, *_ in found] == [0, 1] * 5
    for (_, x1, _, width, _), (_, x2, *_) in itertools.pairwise(found):
        assert x1 + width <= x2


def test_a_missing_height_leaves_its_column_out():
    chart = column_chart("t", [Columns("a", "n", (None, 3.0))], 3)
    assert [series for series, *_ in rectangles(chart)] == [1]
