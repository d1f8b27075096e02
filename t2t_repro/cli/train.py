"""`t2t train`: prepare data if necessary, train, evaluate, keep checkpoints."""

from __future__ import annotations

import argparse
import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.cli.data_flags import add_data_flags
from t2t_repro.cli.flags import add_refused_flag, add_setting_flag
from t2t_repro.cli.framework import (
    LEAST_ADDRESSES_TO_TRAIN,
    import_tensorflow,
)
from t2t_repro.cli.train_report import print_report
from t2t_repro.cli.training_request import requested_training
from t2t_repro.features import modules
from t2t_repro.runs.prepared_training import PreparedTraining
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.signals import SIGNALLED

if TYPE_CHECKING:
    from t2t_repro.runs import TrainResult

logger = logging.getLogger(__name__)

DESCRIPTION = (
    "Train a model. Without flags: the embedded problem and a tiny set, a few minutes "
    "on a laptop's CPU. To resume a run, give only its --output_dir; to train it "
    "further, add a higher --train_steps.\n\n"
    "Exit codes: 0 = training is complete; 143 or 130 = stopped by SIGTERM or Ctrl-C "
    "after the current update, which is saved: the same command resumes; 1 = failed, "
    "with a message; 2 = wrong flags; 75 = another worker stopped: start all again."
)
_MODEL_FLAGS = ("model", "hparams_set", "hparams", "output_dir")
_DEVICE_FLAGS = ("cpu_replicas", "cluster", "xla", "deterministic", "try_largest_batch")
_DATA_FLAGS = ("t2t_usr_dir",)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_data_flags(parser)
    add_refused_flag(
        parser,
        "--schedule",
        "`t2t train` always trains, evaluates and saves; leave it out",
    )
    for module in modules("trainers").values():
        module.add_flags(parser)
    training = parser.add_argument_group("training")
    devices = parser.add_argument_group("devices")
    for name in TrainSettings.names():
        if name in _MODEL_FLAGS:
            add_setting_flag(parser, TrainSettings, name)
        elif name in _DEVICE_FLAGS:
            add_setting_flag(devices, TrainSettings, name)
        elif name not in _DATA_FLAGS:
            add_setting_flag(training, TrainSettings, name)
    parser.add_argument(
        "--no_final_score",
        action="store_true",
        help="do not translate and score the test or dev split after training",
    )


def run(args: argparse.Namespace) -> int:
    """Train, then print scores, sample translations and the next commands."""
    # Report a mistake before TensorFlow is imported.
    request = requested_training(args)
    settings, problem = request.settings, request.problem
    trainers = modules("trainers").values()
    asked = (module.requested(args, settings) for module in trainers)
    trainer = next(filter(None, asked), None)
    if trainer is not None:
        training = trainer.check(problem)
    else:
        training = PreparedTraining.of(settings, problem, request.recorded)
    for name, (value, changed) in training.changes.items():
        logger.info("%s: %s instead of %s", name, changed, value)

    import_tensorflow(LEAST_ADDRESSES_TO_TRAIN)
    from t2t_repro.data.prepare import open_or_prepare
    from t2t_repro.machine import available_cores
    from t2t_repro.runs.training import train_prepared

    data = open_or_prepare(
        problem,
        request.data_dir,
        request.preparation,
        args.tmp_dir,
        num_workers=args.num_workers or available_cores(),
        show_progress=True,
    )
    if trainer is not None:
        results = trainer.train(data)
    else:
        results = [train_prepared(training, data, show_progress=True)]
    if not all(result.complete for result in results):
        return _stopped(results, settings)
    if results[0].is_chief:
        print_report(
            Path(settings.output_dir),
            results,
            data,
            training.search,
            with_scores=not args.no_final_score,
        )
    return 0


def _stopped(results: Sequence[TrainResult], settings: TrainSettings) -> int:
    """Report that a signal stopped training, and return the exit code."""
    steps = [result.steps for result in results]
    command = f"`t2t train --output_dir {shlex.quote(settings.output_dir)}`"
    logger.info(
        "stopped at step %s of %d; %s resumes the run",
        " and ".join(map(str, dict.fromkeys(steps))),
        settings.train_steps,
        command if all(steps) else "the same command",
    )
    stop_signal = next((one.stop_signal for one in results if not one.complete), None)
    return SIGNALLED + stop_signal if stop_signal else 1
