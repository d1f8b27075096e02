"""The flag `--target_prefix`: text that translations must begin with."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from t2t_repro.cli.streams import read_input
from t2t_repro.errors import UserError


def add_prefix_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--target_prefix`."""
    parser.add_argument(
        "--target_prefix",
        metavar="FILE",
        help="text that each translation must begin with, one line per sentence; an "
        "empty line forces nothing",
    )


def read_prefixes(
    args: argparse.Namespace, sentences: Sequence[str]
) -> list[str] | None:
    """Read the file of the flag, or return None if it is not given.

    Raises:
        UserError: If it cannot be read, or has not one line per sentence.
    """
    if args.target_prefix is None:
        return None
    prefixes = read_input(args.target_prefix)
    if len(prefixes) != len(sentences):
        raise UserError(
            f"received {len(sentences)} lines to translate and {len(prefixes)} lines "
            f"of --target_prefix {args.target_prefix}, expected one line per sentence."
        )
    return prefixes
