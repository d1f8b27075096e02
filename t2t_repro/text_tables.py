"""Tables as aligned plain text and as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence

_SEPARATOR = "  "


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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _SEPARATOR.join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


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
