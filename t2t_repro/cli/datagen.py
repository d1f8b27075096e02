"""`t2t datagen`: a problem's text to shards of ids, a vocabulary and a manifest."""

from __future__ import annotations

import argparse

from t2t_repro.cli.data_arguments import (
    add_data_arguments,
    problem_from_arguments,
    required_data_dir,
)
from t2t_repro.cli.data_summary import summary


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Registers the command's flags."""
    add_data_arguments(subparsers.add_parser("datagen", description=__doc__))


def run(args: argparse.Namespace) -> int:
    """Prepares the data, or finds it prepared, and prints its counts."""
    problem, settings = problem_from_arguments(args)
    data_dir = required_data_dir(args)
    from t2t_repro.data.prepare import prepare

    manifest = prepare(problem, data_dir, args.tmp_dir, settings)
    print("\n".join(summary(manifest, data_dir)))
    return 0
