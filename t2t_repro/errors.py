"""Errors that the user can correct: shown as one or two lines, never as a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Error that the user can correct; the message says what to do.

    The message names the received value, the expected value and the next step.
    """

    exit_code = 1


class UsageError(UserError):
    """Error of the command line: an unknown flag, name or value."""

    exit_code = 2


def unknown_name(
    kind: str, name: str, known: Iterable[str], how_to_list: str
) -> UsageError:
    """Return the error for an unknown name, with the closest known names.

    Args:
        kind: Kind of the name, e.g. "problem".
        name: The unknown name.
        known: All known names.
        how_to_list: Next step, e.g. "`t2t list problems` names them all."
    """
    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    guess = f"Did you mean {' or '.join(close)}? " if close else ""
    return UsageError(f"unknown {kind} {name!r}.\n{guess}{how_to_list}")
