"""Lines, boxes and words on a page, written as SVG or PDF by `svg` and `pdf`.

Coordinates are in points (1/72 inch), from the upper left corner. Drawn without
matplotlib, which users need not have: three shapes are enough, and every line and word
stays editable.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from typing import Literal

Color = tuple[int, int, int]  # red, green, blue; 0 to 255
BLACK: Color = (0, 0, 0)
GRAY: Color = (110, 110, 110)

# Advance widths of Helvetica for the characters 32 to 126, in 1/1000 of the font size,
# from Adobe's font metrics.
_HELVETICA = (
    *(278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278),
    *(556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556),
    *(1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778),
    *(667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556),
    *(333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556),
    *(556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584),
)
_OTHERS = {
    "\u00df": 611,  # sharp s
    "\u2013": 556,  # en dash
    "\u2018": 222,  # quotation marks
    "\u2019": 222,
    "\u201c": 333,
    "\u201d": 333,
    "\u201e": 333,
    "\u00ab": 556,
    "\u00bb": 556,
}
_WIDE = 1000


@dataclasses.dataclass(frozen=True)
class Line:
    """A straight line."""

    start: tuple[float, float]
    end: tuple[float, float]
    color: Color
    opacity: float
    width: float = 1.5


@dataclasses.dataclass(frozen=True)
class Box:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    color: Color
    opacity: float


@dataclasses.dataclass(frozen=True)
class Label:
    """A text on one line.

    Attributes:
        x: Where the baseline starts or ends.
        y: The same.
        text: The text.
        size: Size of the font in points.
        color: Color of the text.
        upward: Whether the text runs upward instead of to the right.
        anchor: Whether `x` and `y` are the start or the end of the text.
    """

    x: float
    y: float
    text: str
    size: float
    color: Color = BLACK
    upward: bool = False
    anchor: Literal["start", "end"] = "start"


Shape = Line | Box | Label


@dataclasses.dataclass(frozen=True)
class Drawing:
    """Shapes on a page; later shapes cover earlier ones.

    Attributes:
        title: Title of the file, read out by screen readers.
        width: Width of the page in points.
        height: Height of the page in points.
        shapes: What to draw.
    """

    title: str
    width: float
    height: float
    shapes: tuple[Shape, ...]


def text_width(text: str, size: float) -> float:
    """Return the width of a text in Helvetica, in points.

    Letters with accents are as wide as their base letters; characters that Helvetica
    does not have count as one em.
    """
    base = unicodedata.normalize("NFD", text)
    units = sum(_width(c) for c in base if not unicodedata.combining(c))
    return units * size / 1000


def _width(character: str) -> int:
    index = ord(character) - 32
    if 0 <= index < len(_HELVETICA):
        return _HELVETICA[index]
    return _OTHERS.get(character, _WIDE)
