"""What the programs of this package share: their exit code after an error."""

from __future__ import annotations

import sys
from collections.abc import Callable

from t2t_repro.errors import UserError


def exit_code(run: Callable[[], object]) -> int:
    """Run a program; return 0, or 1 after printing an error of the user.

    Args:
        run: The program.
    """
    try:
        run()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
