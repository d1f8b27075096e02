"""Parse command lines of `t2t` by the parsers of its commands."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence

from t2t_repro.cli.main import COMMANDS, CommandParser


def parsed(command: str, arguments: Sequence[str]) -> argparse.Namespace:
    """Return the flags of a command.

    Raises:
        UsageError: If the command does not accept them.
    """
    parser = CommandParser(prog=f"t2t {command}")
    importlib.import_module(COMMANDS[command].module).add_flags(parser)
    return parser.parse_args(arguments)
