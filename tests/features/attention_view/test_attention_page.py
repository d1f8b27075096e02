"""The self-contained page: its parts, its policy and its size."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

import t2t_repro.features.attention_view
from t2t_repro.features.attention_view.sentence_attention import html_page
from tests.support.attention_documents import make_document
from tests.support.html_elements import Elements

STATIC = Path(t2t_repro.features.attention_view.__file__).parent / "static"
HOSTILE = "</script><script>alert(1)</script><!--<b>&amp;\"'\u2028\u2029"


def policy_of(page: str) -> str:
    metas = [attributes for attributes, _ in Elements(page).all("meta")]
    (policy,) = [meta["content"] for meta in metas if "http-equiv" in meta]
    assert policy is not None
    return policy


def test_the_documents_are_in_the_page_unchanged():
    document = make_document(source=[HOSTILE, "▁und", "</s>"], aligned=[0] * 10)
    (data, _) = Elements(html_page([document], "T")).all("script")
    assert data[0] == {"type": "application/json", "id": "attention-data"}
    assert json.loads(data[1]) == {"title": "T", "documents": [document]}


def test_hostile_text_cannot_end_its_element():
    document = make_document(source=[HOSTILE, "</s>"], aligned=[0] * 10, title=HOSTILE)
    page = html_page([document], HOSTILE)
    elements = Elements(page)
    assert len(elements.all("script")) == 2
    assert elements.all("title") == [({}, HOSTILE)]
    assert not set(elements.all("script")[0][1]) & set("<>&\u2028\u2029")


def test_the_policy_allows_only_the_script_and_the_style_of_the_page():
    page = html_page([make_document()], "T")
    elements = Elements(page)
    script = elements.all("script")[1][1]
    ((_, style),) = elements.all("style")

    def quoted(text: str) -> str:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        return f"'sha256-{digest}'"

    assert policy_of(page).split("; ") == [
        "default-src 'none'",
        f"script-src {quoted(script)}",
        f"style-src {quoted(style)}",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_sixty_tokens_six_layers_and_eight_heads_take_at_most_two_megabytes():
    tokens = [f"▁token{i}" for i in range(59)] + ["</s>"]
    document = make_document(
        source=tokens, target=tokens, aligned=range(60), layers=6, heads=8
    )
    assert [len(base64.b64decode(m["weights"])) for m in document["maps"]] == [
        2 * 6 * 8 * 60 * 60
    ] * 3
    assert len(html_page([document], "T").encode()) <= 2_000_000


def test_the_pages_script_and_style_take_less_than_60_kilobytes():
    files = [STATIC / "attention_view.js", STATIC / "attention_view.css"]
    assert sum(path.stat().st_size for path in files) < 60_000


@pytest.mark.parametrize("name", ["attention_view.js", "attention_view.css", "page.js"])
def test_script_and_style_load_nothing_and_evaluate_nothing(name):
    text = (STATIC / name).read_text(encoding="utf-8")
    assert set(re.findall(r"\w+://[\w./]+", text)) <= {"http://www.w3.org/2000/svg"}
    markup = r"innerHTML|outerHTML|insertAdjacent|document\.write"
    assert not re.findall(rf"{markup}|\beval\b|Function\(", text)
    assert not re.findall(r"@import|\burl\(|\bimport\b|\bfetch\b", text)


def test_numbers_that_json_lacks_are_refused():
    document = {**make_document(), "score": float(np.nan)}
    with pytest.raises(ValueError, match="JSON"):
        html_page([document], "T")
