"""Panels of attention figures: a row of words above, one below, lines between them.

As in the figures of "Attention Is All You Need": the words are upright, a line is as
opaque as its weight, and a head has its color.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from t2t_repro.features.attention_view.drawing import (
    GRAY,
    Box,
    Color,
    Drawing,
    Label,
    Line,
    Shape,
    text_width,
)

# Those of the light page, `static/attention_view.js`; more heads get lighter ones.
_COLORS: tuple[Color, ...] = (
    (0, 118, 177),
    (216, 98, 0),
    (0, 153, 107),
    (118, 0, 177),
    (234, 138, 157),
    (98, 59, 0),
    (177, 168, 0),
    (20, 59, 118),
    (169, 155, 240),
    (161, 60, 92),
)
_QUERY: Color = (190, 190, 190)
_CELL: Color = (242, 242, 242)
_FONT = 11.0
_SMALL = 9.0
_COLUMN = 17.0  # width of a word
_LINES = 95.0  # height of the lines
_MARGIN = 12.0
_PAD = 4.0  # between a word and the lines
_STRIP = 6.0  # height of a head's cells between the lines and the words
_LONGEST = 24  # characters of a word that are shown
_FAINTEST = 0.01  # smallest weight that is drawn


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

    heads: tuple[int, ...]
    weights: np.ndarray
    queries: Sequence[str]
    keys: Sequence[str]
    query: int | None = None


def draw_panels(panels: Sequence[Panel], caption: str, title: str) -> Drawing:
    """Draw panels below each other, each with a legend of its heads.

    Args:
        panels: At least one panel.
        caption: Line above the panels, such as "Encoder self-attention, layer 5 of 6".
        title: Title of the file, see `Drawing`.
    """
    shapes: list[Shape] = [Label(_MARGIN, _MARGIN + _SMALL, caption, _SMALL, GRAY)]
    y = 2 * _MARGIN + _SMALL
    for panel in panels:
        layout = _Layout.of(panel, y)
        shapes += _shapes(panel, layout)
        y = layout.bottom + _MARGIN
    columns = max(max(len(p.queries), len(p.keys)) for p in panels)
    legend = max(_legend_width(panel) for panel in panels)
    above = text_width(caption, _SMALL)
    width = 2 * _MARGIN + max(columns * _COLUMN, legend, above)
    return Drawing(title, width, y, tuple(shapes))


@dataclasses.dataclass(frozen=True)
class _Layout:
    """Where the parts of a panel begin, in points from above."""

    legend: float
    queries: float
    lines: float
    cells: float
    keys: float
    bottom: float

    @classmethod
    def of(cls, panel: Panel, top: float) -> _Layout:
        queries = top + _SMALL + _MARGIN
        lines = queries + _tallest(panel.queries) + _PAD
        cells = lines + _LINES
        keys = cells if panel.query is None else cells + len(panel.heads) * _STRIP
        bottom = keys + _PAD + _tallest(panel.keys)
        return cls(top, queries, lines, cells, keys, bottom)


def _tallest(words: Sequence[str]) -> float:
    return max(text_width(shown_word(word), _FONT) for word in words) + _PAD


def shown_word(word: str) -> str:
    """Return a word as it is drawn: at most 24 characters."""
    return word if len(word) <= _LONGEST else f"{word[: _LONGEST - 1]}…"


def _shapes(panel: Panel, layout: _Layout) -> Iterator[Shape]:
    yield from _legend(panel, layout.legend)
    yield from _boxes(panel, layout)
    yield from _lines(panel, layout)
    for index, word in enumerate(panel.queries):
        faded = panel.query not in (None, index)
        yield _word(index, layout.lines - _PAD, word, "start", faded)
    for index, word in enumerate(panel.keys):
        yield _word(index, layout.keys + _PAD, word, "end", False)


def _word(
    index: int, y: float, word: str, anchor: Literal["start", "end"], faded: bool
) -> Label:
    x = _center(index) + 0.35 * _FONT  # the baseline is right of the middle
    color = GRAY if faded else (0, 0, 0)
    return Label(x, y, shown_word(word), _FONT, color, upward=True, anchor=anchor)


def _center(index: int) -> float:
    return _MARGIN + (index + 0.5) * _COLUMN


def _color(head: int) -> Color:
    """Return the color of a head; the second ten are lighter than the first."""
    lighter = min(3, head // len(_COLORS)) / 4
    red, green, blue = (
        round(part + lighter * (255 - part)) for part in _COLORS[head % len(_COLORS)]
    )
    return red, green, blue


def _lines(panel: Panel, layout: _Layout) -> Iterator[Line]:
    """Draw the strongest lines last, on top."""
    found = []
    for (place, query, key), weight in np.ndenumerate(panel.weights):
        if weight >= _FAINTEST and panel.query in (None, query):
            start = (_center(query), layout.lines)
            end = (_center(key), layout.cells)
            color = _color(panel.heads[place])
            found.append(Line(start, end, color, min(1.0, float(weight))))
    yield from sorted(found, key=lambda line: line.opacity)


def _boxes(panel: Panel, layout: _Layout) -> Iterator[Box]:
    """Mark the only word that attends, and draw a row of cells for each head.

    A cell is as opaque as the weight of the word under it.
    """
    if panel.query is None:
        return
    top = layout.queries
    x = _center(panel.query) - _COLUMN / 2
    yield Box(x, top, _COLUMN, layout.lines - top, _QUERY, 0.6)
    for place, head in enumerate(panel.heads):
        y = layout.cells + place * _STRIP
        for key, weight in enumerate(panel.weights[place, panel.query]):
            x = _center(key) - _COLUMN / 2
            yield Box(x, y, _COLUMN - 1, _STRIP - 1, _CELL, 1.0)
            if weight >= _FAINTEST:
                opacity = min(1.0, float(weight))
                yield Box(x, y, _COLUMN - 1, _STRIP - 1, _color(head), opacity)


def _legend(panel: Panel, y: float) -> Iterator[Shape]:
    x = _MARGIN
    for head in panel.heads:
        yield Box(x, y, _SMALL, _SMALL, _color(head), 1.0)
        yield Label(x + 1.5 * _SMALL, y + 0.85 * _SMALL, _name(head), _SMALL)
        x += _entry_width(head)


def _name(head: int) -> str:
    return f"head {head + 1}"


def _entry_width(head: int) -> float:
    return 1.5 * _SMALL + text_width(_name(head), _SMALL) + _MARGIN


def _legend_width(panel: Panel) -> float:
    return sum(map(_entry_width, panel.heads))
