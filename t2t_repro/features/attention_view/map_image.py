"""Draw attention as a picture with tokens as labels, for the tab "Images".

Pillow draws it: TensorBoard already depends on it, and Matplotlib is an extra.
"""

from __future__ import annotations

import base64
import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

# The first of these on the machine. They have Latin, Greek and Cyrillic letters.
FONTS = (
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "LiberationSans-Regular.ttf",
    "Arial.ttf",
)
FONT_SIZE = 13
CELL = 18
MARGIN = 12
LONGEST_LABEL, LONGEST_TITLE = 24, 60
MAX_TOKENS = 60
_SIDES = ("queries", "keys")
# White is 0 and dark blue is 1.
_DARK = np.array([8.0, 48.0, 107.0])
_INK, _GRID, _PAPER = (20, 20, 20), (225, 225, 225), (255, 255, 255)


def draw_map(document: dict[str, Any], kind: str, title: str) -> np.ndarray | None:
    """Draw the attention of every layer, averaged over its heads.

    Rows of a panel are queries, columns are keys; the weights of each row sum to one.
    Darkness is the square root of the weight, so that small weights can be seen. Panels
    are below each other: TensorBoard makes a picture as narrow as its column. Differs
    from tensor2tensor (`attention_image_summary`), which has no labels.

    Args:
        document: The document of a sentence pair.
        kind: Kind of the map, such as "memory".
        title: Text above the panels.

    Returns:
        Pixels, uint8 `[height, width, 3]`, or None without such a map or without
        tokens.
    """
    for entry in document["maps"]:
        if entry["kind"] == kind:
            sequences = document["sequences"]
            queries, keys = (sequences[entry[s]]["tokens"] for s in _SIDES)
            found = bool(queries and keys)
            return _picture(entry, queries, keys, title) if found else None
    return None


def _picture(
    entry: dict[str, Any], queries: list[str], keys: list[str], title: str
) -> np.ndarray:
    font = _Font()
    weights = layer_means(entry, len(queries), len(keys))[:, :MAX_TOKENS, :MAX_TOKENS]
    if max(len(queries), len(keys)) > MAX_TOKENS:
        title += f", first {MAX_TOKENS} tokens"
    title = font.drawable(title, LONGEST_TITLE)
    rows, columns = (
        # A space mark becomes a dot.
        [font.drawable(t.replace("\u2581", "\u00b7"), LONGEST_LABEL) for t in tokens]
        for tokens in (queries[:MAX_TOKENS], keys[:MAX_TOKENS])
    )
    panels = [
        _panel(layer, rows, columns, f"layer {number}", font)
        for number, layer in enumerate(weights, start=1)
    ]
    width, height = panels[0].size
    top, step = FONT_SIZE + 3 * MARGIN, height + 2 * MARGIN
    width = max(width, font.width(title)) + 2 * MARGIN
    picture = Image.new("RGB", (width, top + len(panels) * step), _PAPER)
    ImageDraw.Draw(picture).text((MARGIN, MARGIN), title, _INK, font.font)
    for number, panel in enumerate(panels):
        picture.paste(panel, (MARGIN, top + number * step))
    return np.asarray(picture)


def layer_means(entry: dict[str, Any], queries: int, keys: int) -> np.ndarray:
    """Return the weights of a map averaged over heads, `[layer, query, key]`."""
    shape = (entry["layers"], entry["heads"], queries, keys)
    flat = np.frombuffer(base64.b64decode(entry["weights"]), "<f2")
    return flat.reshape(shape).astype(np.float32).mean(axis=1)


class _Font:
    """A font of this machine, or Pillow's own, which has ASCII letters only."""

    def __init__(self) -> None:
        self.is_complete = True
        for name in FONTS:
            try:
                self.font = ImageFont.truetype(name, FONT_SIZE)
            except OSError:
                continue
            return
        self.is_complete = False
        self.font = ImageFont.load_default(FONT_SIZE)

    def drawable(self, text: str, longest: int) -> str:
        """Shorten a text, and replace the characters that cannot be drawn."""
        if len(text) > longest:
            text = text[: longest - 3] + "..."
        if not self.is_complete:
            parts = unicodedata.normalize("NFKD", text.replace("\u00b7", "_"))
            letters = "".join(c for c in parts if not unicodedata.combining(c))
            text = letters.encode("ascii", "replace").decode("ascii")
        return "".join(c if c.isprintable() else " " for c in text)

    def width(self, text: str) -> int:
        return math.ceil(self.font.getlength(text))


def _panel(
    weights: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    font: _Font,
) -> Image.Image:
    """Draw one matrix with its labels and its title."""
    share = np.sqrt(np.clip(weights, 0.0, 1.0))[..., None]
    colors = (255.0 + (_DARK - 255.0) * share).astype(np.uint8)
    pixels = colors.repeat(CELL, axis=0).repeat(CELL, axis=1)
    pixels[::CELL] = pixels[:, ::CELL] = _GRID
    left = max(map(font.width, rows)) + MARGIN
    top = max(map(font.width, columns)) + MARGIN + FONT_SIZE + MARGIN
    height, width = pixels.shape[:2]
    panel = Image.new("RGB", (left + width + 1, top + height + 1), _PAPER)
    panel.paste(Image.fromarray(pixels), (left, top))
    draw = ImageDraw.Draw(panel)
    draw.rectangle((left, top, left + width, top + height), outline=_GRID)
    draw.text((left, 0), title, _INK, font.font)
    for row, label in enumerate(rows):
        middle = top + row * CELL + CELL // 2
        draw.text((left - 5, middle), label, _INK, font.font, anchor="rm")
    for column, label in enumerate(columns):  # these read from bottom to top
        text = Image.new("RGB", (max(font.width(label), 1), CELL - 2), _PAPER)
        place = (0, (CELL - 2) // 2)
        ImageDraw.Draw(text).text(place, label, _INK, font.font, anchor="lm")
        x = left + column * CELL + 1
        panel.paste(text.rotate(90, expand=True), (x, top - 4 - text.width))
    return panel
