"""`t2t average`: average the weights of a run's last checkpoints."""

from __future__ import annotations

import argparse

from t2t_repro.cli.flags import add_usr_dir_flag, number_in_range
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.runs.run import Run
from t2t_repro.settings.train_settings import CHECKPOINTS_TO_AVERAGE
from t2t_repro.training.checkpoint_paths import last_checkpoints

DESCRIPTION = (
    "Average the weights of the last checkpoints (paper section 6.1: 5 for base, 20 "
    "for big). The result is --checkpoint_path averaged."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "--output_dir", metavar="DIR", required=True, help="folder of the run"
    )
    parser.add_argument(
        "--last",
        metavar="N",
        type=number_in_range(1, int),
        default=CHECKPOINTS_TO_AVERAGE,
        help="number of checkpoints (default: %(default)s)",
    )
    add_usr_dir_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Average and print the path of the result."""
    # Report a mistake before TensorFlow is imported.
    Run.load_existing(args.output_dir)
    last_checkpoints(args.output_dir, args.last)
    import_tensorflow()
    from t2t_repro.runs import average

    print(average(args.output_dir, args.last, args.t2t_usr_dir))
    return 0
