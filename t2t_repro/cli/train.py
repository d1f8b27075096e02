"""`t2t train`: prepare data if need be, train, evaluate, keep checkpoints."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from t2t_repro import catalogue, registry
from t2t_repro.cli.flags import (
    add_data_flags,
    add_refused_flag,
    at_least,
    problem_and_settings,
)
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.errors import UsageError

logger = logging.getLogger(__name__)

DEMO_PROBLEM = "translate_ende_synthetic"
DEMO_HPARAMS_SET = "transformer_tiny"
DEMO_FOLDER = Path("t2t_demo")
DEMO_TRAIN_STEPS = 1300
DEFAULT_TRAIN_STEPS = 100_000  # of the paper's base model
MOST_STEPS_TO_EVALUATION = 1000
# The paper's base model: 100,000 steps in 12 hours, a checkpoint every 10 minutes, so
# its last 5 span 7 % of the training (section 6.1).
CHECKPOINTS_PER_RUN = 100
FEWEST_STEPS_TO_CHECKPOINT = 50
LARGEST_SEED = 2**32 - 1  # NumPy's


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command's flags."""
    parser = subparsers.add_parser(
        "train",
        description=(
            "Train a model. Without flags: the embedded problem and a tiny set, a few "
            "minutes on a laptop's CPU. The same command again goes on from the last "
            "checkpoint."
        ),
    )
    add_data_flags(parser)
    add_refused_flag(
        parser,
        "--schedule",
        "`t2t train` always trains, evaluates and saves; leave it out",
    )
    parser.add_argument(
        "--model", default="transformer", help="model (default: transformer)"
    )
    parser.add_argument("--hparams_set", help="hparams set; `t2t list hparams`")
    parser.add_argument(
        "--hparams", default="", help='changes to the set, "name=value,name=value"'
    )
    parser.add_argument("--output_dir", help="folder of the run")
    _add_loop_arguments(parser)
    _add_device_arguments(parser)


def _add_loop_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training")

    def number(
        flag: str,
        smallest: int,
        default: int | None,
        text: str,
        largest: int | None = None,
    ) -> None:
        shown = "" if default is None else f" (default: {default})"
        group.add_argument(
            flag,
            metavar="N",
            type=at_least(smallest, int, largest),
            default=default,
            help=text + shown,
        )

    number(
        "--train_steps",
        1,
        None,
        "updates at the end of training, those before a resume included "
        f"(default: {DEFAULT_TRAIN_STEPS}; without --problem {DEMO_TRAIN_STEPS})",
    )
    number(
        "--random_seed",
        0,
        1,
        "of weights, dropout and data order",
        largest=LARGEST_SEED,
    )
    number("--log_step_count_steps", 1, 100, "steps between two lines of metrics")
    number(
        "--local_eval_frequency",
        1,
        None,
        "steps between two evaluations (default: a third of --train_steps, at most "
        f"{MOST_STEPS_TO_EVALUATION})",
    )
    number("--eval_sentences", 0, 500, "dev sentences translated to score them")
    number(
        "--save_checkpoints_steps",
        0,
        None,
        "steps between two checkpoints; 0 = by time alone (default: a hundredth of "
        f"--train_steps, at least {FEWEST_STEPS_TO_CHECKPOINT}; with "
        "--save_checkpoints_secs 0)",
    )
    number("--save_checkpoints_secs", 0, 0, "seconds between two; 0 = by steps alone")
    number(
        "--keep_checkpoint_max",
        1,
        10,
        "newest checkpoints that are kept; at least --average_last",
    )
    number("--average_last", 0, 5, "checkpoints averaged after training; 0 = none")
    parser.add_argument(
        "--no_final_score",
        action="store_true",
        help="do not translate the test split, or dev, when training is over",
    )


def _add_device_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("devices")
    group.add_argument(
        "--cpu_replicas",
        metavar="N",
        type=at_least(0, int),
        default=0,
        help="replicas on the CPU, to try data parallelism (default: 0 = one on each "
        "GPU, or one on the CPU)",
    )
    group.add_argument(
        "--xla",
        choices=("auto", "on", "off"),
        default="auto",
        help="compile steps with XLA (default: auto = unless CPU replicas share a CPU)",
    )


def run(args: argparse.Namespace) -> int:
    """Train, then average, score and show what came out."""
    _fill_in_defaults(args)
    # A mistyped name or value is answered before TensorFlow is imported.
    problem_and_settings(args)
    named_set = catalogue.hparams(args.hparams_set)
    hparams = named_set.parse(args.hparams)
    for name, (value, changed) in named_set.diff(hparams).items():
        logger.info("%s: %s, in place of %s", name, changed, value)
    registry.models.entry(args.model)

    import_tensorflow()
    from t2t_repro.cli.training_job import TrainingJob

    return TrainingJob(args, hparams.resolved()).run()


def _fill_in_defaults(args: argparse.Namespace) -> None:
    """Complete the flags, or say which one is missing."""
    if args.problem is None:
        _fill_in_demonstration(args)
    for flag in ("hparams_set", "data_dir", "output_dir"):
        if getattr(args, flag) is None:
            raise UsageError(
                f"--{flag} is missing.\n`t2t train --help` shows what it is; without "
                "--problem nothing else is needed."
            )
    args.train_steps = args.train_steps or DEFAULT_TRAIN_STEPS
    args.keep_checkpoint_max = max(args.keep_checkpoint_max, args.average_last)
    if args.local_eval_frequency is None:
        third = -(-args.train_steps // 3)
        args.local_eval_frequency = min(third, MOST_STEPS_TO_EVALUATION)
    if args.save_checkpoints_steps is None:
        share = args.train_steps // CHECKPOINTS_PER_RUN
        by_steps = max(share, FEWEST_STEPS_TO_CHECKPOINT)
        args.save_checkpoints_steps = 0 if args.save_checkpoints_secs else by_steps


def _fill_in_demonstration(args: argparse.Namespace) -> None:
    """Without a problem, the flags become those of the demonstration."""
    logger.info("no --problem given: training on %s", DEMO_PROBLEM)
    args.problem = DEMO_PROBLEM
    args.hparams_set = args.hparams_set or DEMO_HPARAMS_SET
    args.data_dir = args.data_dir or str(DEMO_FOLDER / "data")
    args.output_dir = args.output_dir or str(DEMO_FOLDER / "run")
    args.train_steps = args.train_steps or DEMO_TRAIN_STEPS
