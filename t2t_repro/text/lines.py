"""Lines of text: one sentence each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from t2t_repro.errors import UserError
from t2t_repro.text_tables import quantity

# Text of which nothing is visible, in the syntax of both Python and TensorFlow (RE2):
# separators and controls (categories Z and Cc), characters that Unicode calls
# default-ignorable, such as U+200B, U+FEFF and the Hangul fillers, and format
# characters (Cf) but for number signs such as U+06DD, which are drawn. Combining marks
# are drawn even without a letter, so they are text. The ranges are written out, because
# the versions of Unicode in Python and in RE2 differ.
BLANK_TEXT = (
    r"[\x00-\x20\x7f-\xa0\xad"
    "\u034f\u061c\u115f-\u1160\u1680\u17b4-\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]*"
)
_BLANK = re.compile(BLANK_TEXT)
# What Python's `str.split` and `str.strip` take as white space, in RE2's syntax.
PYTHON_SPACES = (
    "[\t-\r\x1c-\x20\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character; then it counts as empty."""
    return _BLANK.fullmatch(text) is not None


def as_line(text: str) -> str:
    """Keep a translation on one line, since a model may generate any character.

    Unicode has more line breaks, but only these two end a line of a file: LF always,
    and CR if Python opens the file with its default settings.
    """
    return text.replace("\n", " ").replace("\r", " ")


def listed(texts: Iterable[str], name: str) -> list[str]:
    """Return texts as a list, from a list, an array, a generator or the like.

    Args:
        texts: The texts.
        name: Name of the argument, for messages.

    Raises:
        ValueError: If it is one text instead of several, or an item is not text.
    """
    if isinstance(texts, str | bytes):
        raise ValueError(
            f"`{name}` must be a list of sentences, such as [{texts!r}]. "
            f"Received: {texts!r}"
        )
    found = list(texts)
    for text in found:
        if not isinstance(text, str):
            raise ValueError(f"`{name}` must be a list of strings. Received: {text!r}")
    return [str(text) for text in found]  # NumPy has its own class


def check_same_length(
    first: Sequence[str],
    second: Sequence[str],
    first_name: str = "the sources",
    second_name: str = "the references",
) -> None:
    """Refuse two texts, one per side, that differ in their number of lines.

    Args:
        first: Lines of one text.
        second: Lines of the other.
        first_name: Name of the first text for the message, such as that of its file.
        second_name: Name of the second.

    Raises:
        UserError: If the numbers differ.
    """
    if len(first) != len(second):
        raise UserError(
            f"received {quantity(len(first), 'line')} in {first_name} and "
            f"{len(second):,} in {second_name}, expected equal numbers: one line per "
            "sentence."
        )


def check_scored(
    hypotheses: Sequence[object], references: Sequence[object], kind: str
) -> None:
    """Refuse outputs that cannot be scored against references.

    Args:
        hypotheses: Outputs of a system.
        references: One reference per output.
        kind: Noun for an output, such as "translation".

    Raises:
        UserError: If the numbers differ, or are zero.
    """
    if len(hypotheses) != len(references) or not hypotheses:
        raise UserError(
            f"received {quantity(len(hypotheses), kind)} and "
            f"{quantity(len(references), 'reference')}, expected equal numbers of "
            "both, and at least one."
        )
