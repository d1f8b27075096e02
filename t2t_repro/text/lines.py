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


def check_scored(
    hypotheses: Sequence[object], references: Sequence[object], kind: str
) -> None:
    """Refuse outputs that cannot be scored against references.

    Args:
        hypotheses: Outputs of a system.
        references: One reference per output.
        kind: What the outputs are, such as "translations".

    Raises:
        UserError: If the numbers differ, or are zero.
    """
    if len(hypotheses) != len(references) or not hypotheses:
        raise UserError(
            f"received {len(hypotheses)} {kind} and {len(references)} references, "
            "expected equal numbers of both, and at least one."
        )
