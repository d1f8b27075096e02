"""Write a drawing as SVG."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from t2t_repro.features.attention_view.drawing import (
    Box,
    Color,
    Drawing,
    Label,
    Line,
    Shape,
)

# Characters that XML 1.0 does not allow, even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def svg(drawing: Drawing) -> str:
    """Return a drawing as an SVG document, without scripts and external files."""
    size = f"{_number(drawing.width)} {_number(drawing.height)}"
    width, height = size.split()
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}pt" '
        f'height="{height}pt" viewBox="0 0 {size}" role="img" '
        'font-family="Helvetica, Arial, sans-serif">',
        f"<title>{_text(drawing.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *map(_element, drawing.shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _element(shape: Shape) -> str:
    if isinstance(shape, Line):
        return _line(shape)
    return _box(shape) if isinstance(shape, Box) else _label(shape)


def _line(line: Line) -> str:
    (x1, y1), (x2, y2) = line.start, line.end
    return (
        f'<line x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" '
        f'y2="{_number(y2)}" stroke="{_color(line.color)}" '
        f'stroke-width="{_number(line.width)}" '
        f'stroke-opacity="{_number(line.opacity)}" stroke-linecap="round"/>'
    )


def _box(box: Box) -> str:
    return (
        f'<rect x="{_number(box.x)}" y="{_number(box.y)}" '
        f'width="{_number(box.width)}" height="{_number(box.height)}" '
        f'fill="{_color(box.color)}" fill-opacity="{_number(box.opacity)}"/>'
    )


def _label(label: Label) -> str:
    place = f"{_number(label.x)} {_number(label.y)}"
    turn = " rotate(-90)" if label.upward else ""
    return (
        f'<text transform="translate({place}){turn}" font-size="{_number(label.size)}" '
        f'text-anchor="{label.anchor}" fill="{_color(label.color)}">'
        f"{_text(label.text)}</text>"
    )


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _color(color: Color) -> str:
    return "#" + "".join(f"{part:02x}" for part in color)


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))
