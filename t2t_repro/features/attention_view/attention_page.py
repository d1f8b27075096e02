"""The attention view as one self-contained HTML page.

The page needs no network and no other file. Its Content-Security-Policy allows the
script and the style of this package by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

# Characters that could end the script element; U+2028 and U+2029 end a line of script.
JSON_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def html_page(documents: Sequence[Mapping[str, Any]], title: str) -> str:
    """Return a page that shows the attention of sentence pairs.

    Args:
        documents: One document per sentence pair, from `Attention.to_document`.
        title: Title of the page.

    Returns:
        The text of an HTML file, to be written as UTF-8.
    """
    style = _static("page.css") + _static("attention_view.css")
    script = _static("attention_view.js") + _static("page.js")
    return _static("page.html").format(
        policy=_policy(script, style),
        title=html.escape(title),
        style=style,
        data=_embedded({"title": title, "documents": list(documents)}),
        script=script,
    )


def _static(name: str) -> str:
    folder = resources.files("t2t_repro.features.attention_view") / "static"
    return (folder / name).read_text(encoding="utf-8")


def _embedded(data: Mapping[str, Any]) -> str:
    """Return JSON that can't end the script element that holds it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(JSON_ESCAPES)


def _policy(script: str, style: str) -> str:
    """Return a policy that allows exactly this script and this style."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; "
        f"style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
