"""Lines of text: one sentence each."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_repro.errors import UserError


def as_line(text: str) -> str:
    """Keep a translation on one line, since a model may generate any character.

    Unicode has more line breaks, but only these two end a line of a file: LF always,
    and CR if Python opens the file with its default settings.
    """
    return text.replace("\n", " ").replace("\r", " ")


def check_same_length(sources: Sequence[str], references: Sequence[str]) -> None:
    """Raise UserError if the numbers of sources and references differ."""
    if len(sources) != len(references):
        raise UserError(
            f"received {len(sources)} lines to translate and {len(references)} "
            "references, expected one reference per line."
        )
