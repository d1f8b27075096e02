"""`t2t average`: average the weights of a run's last checkpoints."""

from __future__ import annotations

import argparse

from t2t_repro.cli.flags import add_usr_dir_flag, at_least
from t2t_repro.cli.framework import import_tensorflow

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
        type=at_least(1, int),
        default=5,
        help="number of checkpoints (default: 5)",
    )
    add_usr_dir_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Average and print the path of the result."""
    import_tensorflow()
    from t2t_repro.runs import average

    print(average(args.output_dir, args.last, args.t2t_usr_dir))
    return 0
<<<<<<< HEAD
=======


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
    from t2t_repro.training.averaging import average_checkpoints
    from t2t_repro.training.checkpoints import all_checkpoints, step_of

    run_description = Run.load_existing(output_dir)
    catalogue.load(usr_dir or run_description.usr_dir)
    paths = all_checkpoints(output_dir)[-last:]
    if not paths:
        raise UserError(f"no checkpoint in {output_dir}: `t2t train` writes them.")
    steps = ", ".join(str(step_of(path)) for path in paths)
    logger.info("averaging %d checkpoint(s), of step %s", len(paths), steps)
    model = build_model(run_description, *run_description.load_tokenizers(output_dir))
    return average_checkpoints(model, output_dir, paths)
>>>>>>> training
