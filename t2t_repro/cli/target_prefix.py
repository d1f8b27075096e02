"""The flag `--target_prefix`: text that translations must begin with."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from t2t_repro.cli.live_input import LiveLines, TypedLines
from t2t_repro.cli.streams import read_input
from t2t_repro.errors import UsageError, UserError
from t2t_repro.text_tables import quantity


def add_prefix_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--target_prefix`."""
    parser.add_argument(
        "--target_prefix",
        metavar="FILE",
        help="text that each translation must begin with, one line per sentence; an "
        "empty line forces nothing, and a blank source stays without a translation",
    )


def read_prefixes(
    args: argparse.Namespace, sources: Sequence[list[str] | LiveLines | TypedLines]
) -> list[str] | None:
    """Read the file of the flag, or return None if it is not given.

    Args:
        args: Flags of the command.
        sources: Lines of every file to translate.

    Raises:
        UserError: If it cannot be read, or does not have one line per sentence.
        UsageError: If there are several files, or the number of lines is not known.
    """
    if args.target_prefix is None:
        return None
    sentences = sources[0]
    if len(sources) > 1 or not isinstance(sentences, list):
        raise UsageError(
            "received --target_prefix with several files or an open stream, expected "
            "one file to translate: give it as --decode_from_file."
        )
    if args.engine != "tensorflow":
        raise UsageError(
            f"received --target_prefix and --engine {args.engine}, expected "
            "--engine tensorflow, the only engine that follows prefixes."
        )
    prefixes = read_input(args.target_prefix)
    if len(prefixes) != len(sentences):
        raise UserError(
            f"received {quantity(len(sentences), 'line')} to translate and "
            f"{quantity(len(prefixes), 'line')} of --target_prefix "
            f"{args.target_prefix}, expected one line per sentence."
        )
    return prefixes
