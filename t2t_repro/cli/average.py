"""`t2t average`: one set of weights from the last checkpoints of a run."""

from __future__ import annotations

import argparse
import logging

from t2t_repro import catalogue
from t2t_repro.cli.flags import at_least
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.errors import UserError

logger = logging.getLogger(__name__)


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command's flags."""
    parser = subparsers.add_parser(
        "average",
        description=(
            "Average the weights of the last checkpoints (paper section 6.1: 5 for "
            "base, 20 for big). Use them with --checkpoint_path averaged."
        ),
    )
    parser.add_argument("--output_dir", required=True, help="folder of the run")
    parser.add_argument(
        "--last",
        metavar="N",
        type=at_least(1, int),
        default=5,
        help="how many checkpoints (default: 5)",
    )
    parser.add_argument(
        "--t2t_usr_dir", help="package with problems, models and hparams of your own"
    )


def run(args: argparse.Namespace) -> int:
    """Average and print the path of the result."""
    import_tensorflow()
    print(average_last(args.output_dir, args.last, args.t2t_usr_dir))
    return 0


def average_last(output_dir: str, last: int, usr_dir: str | None = None) -> str:
    """Average the last checkpoints of a run.

    Args:
        output_dir: Folder of the run.
        last: How many; all of them where there are fewer.
        usr_dir: The user's own package, if any.

    Returns:
        Path of the averaged checkpoint.

    Raises:
        UserError: If there is no checkpoint.
    """
    from t2t_repro.cli.system import build_model
    from t2t_repro.runs import Run
    from t2t_repro.training.checkpoints import (
        all_checkpoints,
        average_checkpoints,
        step_of,
    )

    run_description = Run.load_existing(output_dir)
    catalogue.load(usr_dir or run_description.usr_dir)
    paths = all_checkpoints(output_dir)[-last:]
    if not paths:
        raise UserError(f"no checkpoint in {output_dir}: `t2t train` writes them.")
    steps = ", ".join(str(step_of(path)) for path in paths)
    logger.info("averaging %d checkpoint(s), of step %s", len(paths), steps)
    model = build_model(run_description, *run_description.load_tokenizers(output_dir))
    return average_checkpoints(model, output_dir, paths)
