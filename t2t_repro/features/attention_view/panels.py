"""Panels of attention figures: a row of words above, one below, lines between them.

As in the figures of "Attention Is All You Need": the words are upright, a line is as
opaque as its weight, and a head has its color. Matplotlib, the extra `plot`, draws
them. Coordinates are in points (1/72 inch) from the upper left corner.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import logging
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_repro.errors import UsageError
from t2t_repro.text_tables import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)

# Those of the light page, `static/attention_view.js`; more heads get lighter ones.
_COLORS = (
    *("#0076b1", "#d86200", "#00996b", "#7600b1", "#ea8a9d"),
    *("#623b00", "#b1a800", "#143b76", "#a99bf0", "#a13c5c"),
)
_GRAY, _QUERY, _CELL = "#6e6e6e", "#bebebe", "#f2f2f2"
_FONT = 11.0
_SMALL = 9.0
_COLUMN = 17.0  # width of a word
_LINES = 95.0  # height of the lines
_MARGIN = 12.0
_PAD = 4.0  # space between a word and the lines
_STRIP = 6.0  # height of a head's cells between the lines and the words
_LONGEST = 24  # characters of a word that are shown
_FAINTEST = 0.01  # smallest weight that is drawn
_POINTS = 72  # points per inch
_FIRST_FONT = "DejaVu Sans"  # Matplotlib brings it
_NO_FONT = "Last Resort"  # has a box for every character
# The same figure is the same file; an SVG keeps its words, a PDF embeds their font.
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "t2t_repro", "pdf.fonttype": 42}
_DATES = {"svg": "Date", "pdf": "CreationDate"}


@dataclasses.dataclass(frozen=True)
class Panel:
    """Attention of some heads, at all words or at one.

    Attributes:
        heads: Heads, from 0.
        weights: `[head, query, key]`, in the order of `heads`.
        queries: Words that attend, drawn above.
        keys: Words attended to, drawn below.
        query: The only word whose lines are drawn, or None for all.
    """

    heads: Sequence[int]
    weights: np.ndarray
    queries: Sequence[str]
    keys: Sequence[str]
    query: int | None = None


def check_matplotlib() -> None:
    """Refuse to draw without Matplotlib.

    Raises:
        UsageError: If it is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(
            "a figure needs Matplotlib, which is not installed: pip install matplotlib "
            "(the extra `plot`)."
        )


def shown_word(word: str) -> str:
    """Return a word as it is drawn: at most 24 characters, all of them printable."""
    word = word if len(word) <= _LONGEST else f"{word[: _LONGEST - 1]}…"
    return printable(word)


def draw_panels(panels: Sequence[Panel], caption: str) -> Figure:
    """Draw panels below each other, each with a legend of its heads.

    Args:
        panels: At least one panel.
        caption: Line above the panels, such as "Encoder self-attention, layer 5 of 6".

    Raises:
        UsageError: If Matplotlib is not installed.
    """
    check_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure()
    words = [word for panel in panels for word in (*panel.queries, *panel.keys)]
    pen = _Pen(figure.add_axes((0, 0, 1, 1)), _fonts(map(shown_word, words)))
    widths = [pen.write(_MARGIN, _MARGIN + _SMALL, caption, _SMALL, _GRAY)]
    y = 2 * _MARGIN + _SMALL
    for panel in panels:
        legend, y = _draw(pen, panel, y)
        widths += [legend, max(len(panel.queries), len(panel.keys)) * _COLUMN]
    width = 2 * _MARGIN + max(widths)
    figure.set_size_inches(width / _POINTS, y / _POINTS)
    pen.axes.set(xlim=(0, width), ylim=(y, 0))
    pen.axes.axis("off")
    return figure


def figure_bytes(figure: Figure, form: str, title: str) -> bytes:
    """Return a figure as a file.

    Args:
        figure: Return value of `draw_panels`.
        form: "svg" or "pdf".
        title: Title of the file, read out by screen readers.
    """
    import matplotlib

    file = io.BytesIO()
    metadata = {"Title": printable(title), _DATES[form]: None}
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure.savefig(file, format=form, metadata=metadata)
    return file.getvalue()


def _fonts(words: Iterable[str]) -> list[str]:
    """Return fonts of this machine that have the characters of words together.

    Warns of characters that no font has.
    """
    from matplotlib import font_manager

    wanted = {character for word in words for character in word}
    found = []
    for font in sorted(
        font_manager.fontManager.ttflist,
        key=lambda font: (font.name != _FIRST_FONT, "Sans" not in font.name, font.name),
    ):
        if not wanted:
            break
        if font.name in found or font.name.startswith(_NO_FONT):
            continue
        known = {chr(c) for c in font_manager.get_font(font.fname).get_charmap()}
        if wanted & known:
            found.append(font.name)
            wanted -= known
    if wanted:
        logger.warning(
            "no font of this machine has the characters %s: the PDF shows boxes in "
            "their place; the SVG uses the fonts of its reader",
            "".join(sorted(wanted)),
        )
    return found


@dataclasses.dataclass(frozen=True)
class _Pen:
    """Drawing of words, boxes and texts on a page."""

    axes: Axes
    fonts: list[str]

    def write(
        self, x: float, y: float, text: str, size: float, color: str, **placed: Any
    ) -> float:
        """Write a text whose baseline starts at a point, and return its width."""
        self.axes.text(
            *(x, y, text),
            color=color,
            fontfamily=self.fonts,
            fontsize=size,
            parse_math=False,
            **placed,
        )
        return self.width(text, size)

    def width(self, text: str, size: float) -> float:
        """Return the width of a text in points."""
        from matplotlib.font_manager import FontProperties
        from matplotlib.textpath import text_to_path

        font = FontProperties(family=self.fonts, size=size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `_fonts` warns of missing characters
            measured = text_to_path.get_text_width_height_descent(text, font, False)
        return measured[0]

    def word(self, index: int, y: float, word: str, color: str, side: str) -> None:
        """Write a word upward, whose left or right end is at a height."""
        x = _left(index) + 0.5 * _COLUMN + 0.35 * _FONT  # the baseline is on the right
        upward = {"ha": side, "rotation": 90, "rotation_mode": "anchor"}
        self.write(x, y, shown_word(word), _FONT, color, **upward)

    def box(
        self,
        place: tuple[float, float],
        size: tuple[float, float],
        color: Any,
        opacity: float = 1.0,
    ) -> None:
        """Fill a rectangle from its upper left corner."""
        from matplotlib.patches import Rectangle

        box = Rectangle(place, *size, facecolor=color, alpha=opacity, linewidth=0)
        self.axes.add_patch(box)


def _draw(pen: _Pen, panel: Panel, y: float) -> tuple[float, float]:
    """Draw a panel below a height; return the width of its legend, and its bottom."""
    x = _MARGIN
    for head in panel.heads:
        pen.box((x, y), (_SMALL, _SMALL), _color(head))
        x += 1.5 * _SMALL
        name = f"head {head + 1}"
        x += pen.write(x, y + 0.85 * _SMALL, name, _SMALL, "black") + _MARGIN
    queries, keys = (
        max(pen.width(shown_word(word), _FONT) for word in words) + _PAD
        for words in (panel.queries, panel.keys)
    )
    top = y + _SMALL + _MARGIN
    lines = top + queries + _PAD
    cells = below = lines + _LINES
    if panel.query is not None:
        pen.box((_left(panel.query), top), (_COLUMN, lines - top), _QUERY, 0.6)
        below += _draw_cells(pen, panel, cells)
    _draw_lines(pen, panel, lines, cells)
    for index, word in enumerate(panel.queries):
        color = "black" if panel.query in (None, index) else _GRAY
        pen.word(index, lines - _PAD, word, color, "left")
    for index, word in enumerate(panel.keys):
        pen.word(index, below + _PAD, word, "black", "right")
    return x - _MARGIN, below + _PAD + keys + _MARGIN


def _draw_cells(pen: _Pen, panel: Panel, top: float) -> float:
    """Draw a cell per head and key, as opaque as its weight; return their height."""
    size = (_COLUMN - 1, _STRIP - 1)
    for place, head in enumerate(panel.heads):
        for key, weight in enumerate(panel.weights[place, panel.query]):
            corner = (_left(key), top + place * _STRIP)
            pen.box(corner, size, _CELL)
            pen.box(corner, size, _color(head), min(1.0, float(weight)))
    return len(panel.heads) * _STRIP


def _draw_lines(pen: _Pen, panel: Panel, top: float, bottom: float) -> None:
    """Draw the lines from queries to keys, the strongest last, on top."""
    from matplotlib.collections import LineCollection

    found = sorted(
        (min(1.0, float(weight)), query, key, panel.heads[place])
        for (place, query, key), weight in np.ndenumerate(panel.weights)
        if weight >= _FAINTEST and panel.query in (None, query)
    )
    middle = 0.5 * _COLUMN
    lines = [
        ((_left(query) + middle, top), (_left(key) + middle, bottom))
        for _, query, key, _ in found
    ]
    colors = [(*_color(head), weight) for weight, _, _, head in found]
    pen.axes.add_collection(
        LineCollection(lines, colors=colors, linewidths=1.5, capstyle="round")
    )


def _left(index: int) -> float:
    return _MARGIN + index * _COLUMN


def _color(head: int) -> tuple[float, ...]:
    """Return the color of a head; the second ten are lighter than the first."""
    from matplotlib.colors import to_rgb

    lighter = min(3, head // len(_COLORS)) / 4
    color = to_rgb(_COLORS[head % len(_COLORS)])
    return tuple(part + lighter * (1 - part) for part in color)
