"""Write a drawing as PDF 1.4, the first version with transparency.

The file has one page and uses Helvetica, which every viewer has and which is therefore
not embedded. Its characters are those of Western European languages.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from t2t_repro.errors import UserError
from t2t_repro.features.attention_view.drawing import (
    Box,
    Color,
    Drawing,
    Label,
    Line,
    Shape,
    text_width,
)

_ENCODING = "cp1252"  # PDF's WinAnsiEncoding


class MissingCharacter(UserError):
    """A text has a character that the PDF's font does not have."""


def pdf(drawing: Drawing) -> bytes:
    """Return a drawing as a PDF document.

    Raises:
        MissingCharacter: If a word has a character that Helvetica does not have.
    """
    painted = [shape for shape in drawing.shapes if not isinstance(shape, Label)]
    alphas = sorted({_alpha(shape.opacity) for shape in painted})
    names = {alpha: f"a{index}" for index, alpha in enumerate(alphas)}
    content = "\n".join(_operators(shape, drawing, names) for shape in drawing.shapes)
    stream = zlib.compress(content.encode(_ENCODING), 9)
    states = " ".join(f"/{n} << /ca {a} /CA {a} >>" for a, n in names.items())
    return _document(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {_n(drawing.width)} "
            f"{_n(drawing.height)}] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> "
            f"/ExtGState << {states} >> >> >>".encode(),
            b"<< /Filter /FlateDecode /Length %d >>\nstream\n" % len(stream)
            + stream
            + b"\nendstream",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica "
            b"/Encoding /WinAnsiEncoding >>",
            b"<< /Title " + _utf16(drawing.title) + b" /Producer (t2t_repro) >>",
        ]
    )


def _document(objects: Sequence[bytes]) -> bytes:
    """Number the objects and append the table of their offsets.

    Args:
        objects: The catalog first, the document information last.
    """
    parts = [b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"]
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(sum(map(len, parts)))
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    table = sum(map(len, parts))
    count = len(objects) + 1
    parts.append(b"xref\n0 %d\n0000000000 65535 f \n" % count)
    parts += [b"%010d 00000 n \n" % offset for offset in offsets]
    parts.append(
        b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (count, len(objects), table)
    )
    return b"".join(parts)


def _operators(shape: Shape, drawing: Drawing, names: dict[str, str]) -> str:
    """Return the operators that draw a shape; PDF measures y from the bottom."""
    if isinstance(shape, Label):
        return _label(shape, drawing.height)
    state = f"q /{names[_alpha(shape.opacity)]} gs"
    if isinstance(shape, Box):
        bottom = drawing.height - shape.y - shape.height
        place = f"{_n(shape.x)} {_n(bottom)} {_n(shape.width)} {_n(shape.height)}"
        return f"{state} {_color(shape.color)} rg {place} re f Q"
    return f"{state} {_line(shape, drawing.height)} Q"


def _line(line: Line, height: float) -> str:
    (x1, y1), (x2, y2) = line.start, line.end
    return (
        f"{_color(line.color)} RG {_n(line.width)} w 1 J {_n(x1)} {_n(height - y1)} m "
        f"{_n(x2)} {_n(height - y2)} l S"
    )


def _label(label: Label, height: float) -> str:
    back = text_width(label.text, label.size) if label.anchor == "end" else 0.0
    x, y = label.x, height - label.y
    x, y = (x, y - back) if label.upward else (x - back, y)
    turn = "0 1 -1 0" if label.upward else "1 0 0 1"
    return (
        f"BT /F {_n(label.size)} Tf {_color(label.color)} rg "
        f"{turn} {_n(x)} {_n(y)} Tm ({_string(label.text)}) Tj ET"
    )


def _string(text: str) -> str:
    """Escape a text for a PDF string.

    Raises:
        MissingCharacter: If Helvetica does not have one of its characters.
    """
    for character in text:
        if not character.isprintable() or not _encodable(character):
            raise MissingCharacter(
                f"received the word {text!r}, whose character {character!r} the PDF's "
                "font does not have: use the SVG."
            )
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _encodable(character: str) -> bool:
    try:
        return bool(character.encode(_ENCODING))
    except UnicodeEncodeError:
        return False


def _utf16(text: str) -> bytes:
    return b"<" + f"\ufeff{text}".encode("utf-16-be").hex().encode() + b">"


def _alpha(opacity: float) -> str:
    return _n(round(opacity, 2))


def _n(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _color(color: Color) -> str:
    return " ".join(_n(part / 255) for part in color)
