"""`t2t datagen`: turn a problem's text into shards of ids, with a manifest."""

from __future__ import annotations

import argparse

from t2t_repro.cli.data_flags import add_data_flags, problem_and_settings
from t2t_repro.cli.loading import import_tensorflow
from t2t_repro.data.manifest import summary_lines
from t2t_repro.data.request import requested_settings
from t2t_repro.errors import UsageError

DESCRIPTION = "Turn a problem's text into shards of ids, with a manifest."


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_data_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Prepare the data unless this was done before, and print its counts."""
    problem, given = problem_and_settings(args)
    if not args.data_dir:
        raise UsageError("received no --data_dir, expected the folder for the data")
    import_tensorflow()
    from t2t_repro.data.prepare import prepare
    from t2t_repro.machine import available_cores

    settings = requested_settings(problem, given)
    data = prepare(
        problem,
        args.data_dir,
        args.tmp_dir,
        settings,
        num_workers=args.num_workers or available_cores(),
        show_progress=True,
    )
    print("\n".join(summary_lines(data)))
    return 0
