"""Column charts as inline SVG, coloured by the style sheet of the page around them."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence

_WIDTH, _HEIGHT = 560, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 22, 44
_FLOOR = _HEIGHT - _BOTTOM
_GAP = 0.3  # of the room of a group
_WIDEST = 64  # units of a column


@dataclasses.dataclass(frozen=True)
class Columns:
    """A group of columns side by side.

    Attributes:
        label: Text under the group.
        note: Smaller text under the label, such as a count.
        heights: A number of at least 0 per series; None leaves its column out.
    """

    label: str
    note: str
    heights: tuple[float | None, ...]


def column_chart(
    title: str, groups: Sequence[Columns], largest: float, digits: int = 1
) -> str:
    """Return a chart with a group of columns per label.

    The columns have the classes "series0", "series1" and so on.

    Args:
        title: Description, for screen readers.
        groups: The groups, from left to right; at least one.
        largest: Height of the tallest column that fits; greater than 0.
        digits: Decimals of the numbers above the columns.
    """
    room = (_WIDTH - _LEFT - _RIGHT) / len(groups)
    shapes = [
        f'<line class="axis" x1="{_LEFT}" y1="{_FLOOR}" x2="{_WIDTH - _RIGHT}" '
        f'y2="{_FLOOR}"/>'
    ]
    for index, group in enumerate(groups):
        left = _LEFT + index * room
        shapes += _group(group, left, room, largest, digits)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{html.escape(title)}">\n' + "\n".join(shapes) + "\n</svg>"
    )


def _group(
    group: Columns, left: float, room: float, largest: float, digits: int
) -> list[str]:
    width = min(room * (1 - _GAP) / len(group.heights), _WIDEST)
    middle = left + room / 2
    start = middle - width * len(group.heights) / 2
    shapes = [
        _text(middle, _FLOOR + 17, group.label, "label"),
        _text(middle, _FLOOR + 34, group.note, "note"),
    ]
    for series, height in enumerate(group.heights):
        if height is not None:
            x = start + series * width
            shapes += _column(x, width, height, largest, digits, series)
    return shapes


def _column(
    x: float, width: float, height: float, largest: float, digits: int, series: int
) -> list[str]:
    tall = (_FLOOR - _TOP) * min(height / largest, 1)
    return [
        f'<rect class="series{series}" x="{x + 1:.1f}" y="{_FLOOR - tall:.1f}" '
        f'width="{width - 2:.1f}" height="{tall:.1f}"/>',
        _text(x + width / 2, _FLOOR - tall - 5, f"{height:,.{digits}f}", "value"),
    ]


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'
