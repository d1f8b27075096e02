"""Tables as aligned plain text and as Markdown.

The width of a character is rich's, so that columns of Chinese or Japanese are aligned,
too. tabulate would need wcwidth for that, and four of its settings turned off, to
replace the ten lines of `aligned`.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Collection, Sequence

from rich.cells import cell_len

_SEPARATOR = "  "
_NARROWEST = 25  # characters of a column of sentences
_INDENT = " " * 4
# Characters that change the direction of the text around them.
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def quantity(number: int, one: str, several: str = "") -> str:
    """Return a number with its noun, such as "1 line" or "1,200 lines".

    Args:
        number: The number.
        one: The noun for one.
        several: Its plural; by default with an s.
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Pad the cells of each column to one width and return one line per row.

    Args:
        rows: Cells per row, headings included. All rows have equally many cells.
        right: Indices of the columns to align to the right.

    Raises:
        ValueError: If rows differ in their number of cells.
    """
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        blanks = [" " * (w - cell_len(c)) for w, c in zip(widths, row, strict=True)]
        cells = [
            blank + cell if index in right else cell + blank
            for index, (cell, blank) in enumerate(zip(row, blanks, strict=True))
        ]
        lines.append(_SEPARATOR.join(cells).rstrip())
    return lines


def fitted(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return `aligned` rows whose last cells are broken to fit into a width.

    If too little room is left for the last column, its cells are below the others.

    Args:
        rows: Cells per row, headings included.
        width: Characters per line.
    """
    columns = list(zip(*rows, strict=True))[:-1]
    room = width - sum(max(map(cell_len, c)) + len(_SEPARATOR) for c in columns)
    if room < _NARROWEST and columns:
        return [line for row in rows for line in _stack_last_cell(row, width)]
    lines = []
    for *cells, last in rows:
        first, *others = _break_text(last, room) or [""]
        lines.append([*cells, first])
        lines += [[*[""] * len(cells), part] for part in others]
    return aligned(lines)


def _stack_last_cell(row: Sequence[str], width: int) -> list[str]:
    """Return the lines of a row, with the last cell below the others."""
    *cells, last = row
    return [
        *_break_text(_SEPARATOR.join(filter(None, cells)), width),
        *(f"{_INDENT}{line}" for line in _break_text(last, width - len(_INDENT))),
    ]


def _break_text(text: str, width: int) -> list[str]:
    # textwrap counts characters: a mark makes two of a wide one, and may be cut off.
    marked = "".join(c + "\0" * (cell_len(c) - 1) for c in text)
    room = width - (marked != text)
    lines = textwrap.wrap(marked, room, break_on_hyphens=False)
    return [line.replace("\0", "") for line in lines]


def markdown(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return the lines of a Markdown table whose first row holds the headings.

    Args:
        rows: Cells per row. All rows have equally many cells.
        right: Indices of the columns to align to the right.

    Raises:
        ValueError: If there is no row, or rows differ in their number of cells.
    """
    if len({len(row) for row in rows}) != 1:
        raise ValueError(
            "`rows` must hold headings and equally long rows. Received rows of lengths "
            f"{[len(row) for row in rows]}"
        )
    headings, *body = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    rule = ["---:" if index in right else "---" for index in range(len(headings))]
    return [f"| {' | '.join(row)} |" for row in (headings, rule, *body)]


def printable(text: str) -> str:
    """Replace characters that could control a terminal or mix up the line.

    Control characters, lone surrogates and changes of direction become U+FFFD.
    """
    return "".join(
        "\ufffd" if unicodedata.category(c) in ("Cc", "Cs") or c in _DIRECTIONS else c
        for c in text
    )
