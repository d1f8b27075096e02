"""Mistakes of the user: shown as one or two lines, never as a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user gave cannot be used; the message says what to do.

    The message names what was received, what was expected and the next step.
    """

    exit_code = 1


class UsageError(UserError):
    """The command line itself is wrong: an unknown flag, name or value."""

    exit_code = 2


def unknown_name(
    kind: str, name: str, known: Iterable[str], how_to_list: str
) -> UsageError:
    """Returns the error for a name nobody knows, with the closest known names.

    Args:
        kind: What was looked for, e.g. "problem".
        name: The name as it was received.
        known: Every name that would have been accepted.
        how_to_list: The next step, e.g. "`t2t list problems` names them all."
    """
    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    guess = f"Did you mean {' or '.join(close)}? " if close else ""
    return UsageError(f"unknown {kind} {name!r}.\n{guess}{how_to_list}")
