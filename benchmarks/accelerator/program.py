"""What the programs of this package share: their command line and exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from t2t_repro.errors import UserError


def run_program(
    description: str,
    add_flags: Callable[[argparse.ArgumentParser], object],
    run: Callable[[argparse.Namespace], object],
    arguments: Sequence[str] | None = None,
) -> int:
    """Run a program; return 0, or 1 after printing an error of the user.

    Args:
        description: Its description, of which help shows the first line.
        add_flags: Adds its flags to a parser.
        run: Function of its flags.
        arguments: Its command line; None = that of the process.
    """
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    add_flags(parser)
    try:
        run(parser.parse_args(arguments))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
