"""The flag `--decode_hparams`; shared by the commands that search."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from t2t_repro.errors import UsageError
from t2t_repro.settings.decode_hparams import DecodeHParams


def add_decode_hparams(
    parser: argparse.ArgumentParser, without: Mapping[str, str] | None = None
) -> None:
    """Add the flag, with every name and default in its help.

    Args:
        parser: Of the command.
        without: Names that the command does not read, and why.
    """
    known = "; ".join(
        f"{name}={value} ({DecodeHParams.about(name).help})"
        for name, value in DecodeHParams().values().items()
        if name not in (without or {})
    )
    parser.add_argument(
        "--decode_hparams", default="", help=f'"name=value,name=value" of: {known}'
    )


def decode_hparams(
    args: argparse.Namespace, without: Mapping[str, str] | None = None
) -> DecodeHParams:
    """Give the settings of the search.

    Raises:
        UsageError: If a name or value is refused, or the command does not read it.
    """
    hparams = DecodeHParams().parse(args.decode_hparams)
    for name, why in (without or {}).items():
        if name in hparams.origins:
            raise UsageError(f"{hparams.flag}: {name} would have no effect: {why}")
    return hparams
