"""Text on a terminal: a user's text must not control it.

A model or a file may write escape sequences, which can rewrite what the terminal shows,
and characters that change the direction of the text after them.
"""

from __future__ import annotations

import re
from typing import Any, TextIO, cast

# C0 without TAB and LF, DEL, C1, and the embeddings, overrides and isolates of
# Unicode's bidirectional algorithm.
_COMMANDS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u202a-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    r"""Write characters that control a terminal as escapes, such as `\x1b`."""
    return _COMMANDS.sub(lambda m: ascii(m.group())[1:-1], text)


def guarded(stream: TextIO) -> TextIO:
    """Return a stream that escapes text for a terminal; others stay as they are."""
    return cast("TextIO", _Guard(stream)) if stream.isatty() else stream


class _Guard:
    """A stream of a terminal whose text is `escaped`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(escaped(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
