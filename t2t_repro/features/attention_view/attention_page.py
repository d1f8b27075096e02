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

PAGE_STYLE = """
html, body { margin: 0; height: 100%; }
html { color-scheme: light dark; }
html:has([data-theme="light"]) { color-scheme: light; }
html:has([data-theme="dark"]) { color-scheme: dark; }
"""
# The address names what is chosen, so that a head can be linked. Anyone can write an
# address: what it names is a number, or one of the names that the view knows.
START_SCRIPT = """
{
  const data = JSON.parse(document.getElementById("attention-data").textContent);
  const chosenIn = (address) => {
    const named = new URLSearchParams(address.slice(1));
    const text = (name) => named.get(name) ?? "";
    const indices = (name) => text(name).split(" ")
      .filter((part) => /^[1-9]\\d{0,3}$/.test(part)).map((part) => part - 1);
    const [index] = indices("word");
    const side = text("side") === "key" ? "key" : "query";
    return {
      sentence: indices("sentence")[0], kind: text("attention"),
      layer: indices("layer")[0], heads: indices("heads"), view: text("view"),
      words: text("tokens") !== "subwords", pin: index >= 0 ? { side, index } : null,
    };
  };
  const addressOf = (app) => {
    const { kind, layer, head, view, words, hidden, pin } = app.state;
    const heads = view === "heat" ? [head] : hidden.size ? app.headsOn() : [];
    return String(new URLSearchParams({
      sentence: app.state.sentence + 1, attention: kind, layer: layer + 1,
      ...(heads.length && { heads: heads.map((index) => index + 1).join(" ") }), view,
      ...(!words && { tokens: "subwords" }),
      ...(pin && { side: pin.side, word: pin.index + 1 }),
    }));
  };
  let named, timer;
  const shown = (app) => {
    // Keep the address as it was written until something else is chosen: a new one
    // while the browser goes back can stop it there.
    named ??= addressOf(app);
    clearTimeout(timer);
    // Browsers refuse frequent changes.
    timer = setTimeout(() => {
      const address = addressOf(app);
      if (address === named) return;
      named = address;
      history.replaceState(null, "", `${location.href.split("#")[0]}#${address}`);
    }, 300);
  };
  const source = T2TAttention.fromDocuments(data.documents);
  const chosen = chosenIn(location.hash);
  const view = T2TAttention.mount(
    document.getElementById("attention"),
    { ...source, title: data.title, chosen, shown },
  );
  addEventListener("hashchange", () => {
    named = undefined;
    view.follow(chosenIn(location.hash));
  });
}
"""

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="attention"><noscript>This page needs JavaScript.</noscript></div>
<script type="application/json" id="attention-data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def html_page(documents: Sequence[Mapping[str, Any]], title: str) -> str:
    """Return a page that shows the attention of sentence pairs.

    Args:
        documents: One document per sentence pair, from `Attention.to_document`.
        title: Title of the page.

    Returns:
        The text of an HTML file, to be written as UTF-8.
    """
    style = PAGE_STYLE + _static("attention_view.css")
    script = _static("attention_view.js") + START_SCRIPT
    return PAGE.format(
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
