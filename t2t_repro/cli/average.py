"""`t2t average`: average the weights of a run's last checkpoints."""

from __future__ import annotations

import argparse

from t2t_repro.cli.flags import add_usr_dir_flag, number_in_range
from t2t_repro.cli.loading import import_tensorflow, load_catalogue
from t2t_repro.runs.run import Run
from t2t_repro.runs.run_checkpoints import paths_to_average
from t2t_repro.settings.train_settings import CHECKPOINTS_TO_AVERAGE

DESCRIPTION = (
    "Average the weights of the last checkpoints (paper section 6.1: 5 for base, 20 "
    "for big), or of the best ones. The result is --checkpoint_path averaged."
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "--output_dir", metavar="DIR", required=True, help="folder of the run"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--last",
        metavar="N",
        type=number_in_range(1, int),
        default=CHECKPOINTS_TO_AVERAGE,
        help="number of checkpoints (default: %(default)s)",
    )
    which.add_argument(
        "--best",
        metavar="N",
        type=number_in_range(1, int),
        help="average the N models with the highest dev scores instead; the training's "
        "--keep_best keeps them",
    )
    add_usr_dir_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Average and print the path of the result."""
    # Report a mistake before TensorFlow is imported.
    load_catalogue(Run.load_existing(args.output_dir).package(args.t2t_usr_dir))
    paths_to_average(args.output_dir, args.last, args.best)
    import_tensorflow()
    from t2t_repro.runs import average

    print(average(args.output_dir, args.last, args.t2t_usr_dir, best=args.best))
    return 0
