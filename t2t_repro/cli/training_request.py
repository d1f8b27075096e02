"""Read the flags of a training run: the problem, its data, and the settings."""

from __future__ import annotations

import argparse
import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2t_repro import registry
from t2t_repro.cli.data_flags import problem_and_settings
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UsageError
from t2t_repro.runs.prepared_training import recorded_data_dir, resumed_settings
from t2t_repro.runs.run import Run, member_folders
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.training.checkpoint_paths import all_checkpoints

logger = logging.getLogger(__name__)

DEMO_PROBLEM = "translate_ende_synthetic"
DEMO_HPARAMS_SET = "transformer_tiny"
DEMO_FOLDER = Path("t2t_demo")
DEMO_TRAIN_STEPS = 1300
NEEDED_TO_TRAIN = ("hparams_set", "data_dir", "output_dir")


@dataclasses.dataclass(frozen=True)
class TrainingRequest:
    """A training run that the user asks for.

    Attributes:
        problem: The problem, with the user's files if there are any.
        preparation: Given values of `PrepareSettings` by name.
        data_dir: Folder of the prepared data.
        settings: Settings of the training run.
        recorded: Run that the folder of the settings describes, or None.
        existing: Run in the folder that completes the settings, or None: that of a
            member in the folder of an ensemble.
    """

    problem: Problem
    preparation: dict[str, Any]
    data_dir: str | Path
    settings: TrainSettings
    recorded: Run | None
    existing: Run | None


def requested_training(
    args: argparse.Namespace, required: Sequence[str] = NEEDED_TO_TRAIN
) -> TrainingRequest:
    """Return the training run that the flags of `t2t train` ask for.

    Args:
        args: Flags of the command.
        required: Flags without which `--problem` is refused.

    Raises:
        UsageError: If a flag is missing, or flags contradict each other.
        UserError: If the run to resume cannot be read.
    """
    output_dir = args.output_dir or str(DEMO_FOLDER / "run")
    recorded, existing, run_dir, member = None, None, Path(output_dir), 0
    if args.output_dir is not None or args.problem is None:
        members = member_folders(output_dir)
        recorded = None if members else Run.load(output_dir)
        found = [(folder, Run.load(folder)) for folder in members]
        for number, (folder, run) in enumerate(found or [(run_dir, recorded)]):
            # A run that the user describes in full and that ended before its first
            # checkpoint has nothing to resume, and its settings may be why it ended.
            if run and (args.problem is None or all_checkpoints(folder)):
                existing, run_dir, member = run, folder, number
                break
    if existing is None:
        _check_begins(args)
        problem, given = problem_and_settings(args, default_problem=DEMO_PROBLEM)
        data_dir = args.data_dir or DEMO_FOLDER / "data"
        settings = _new_settings(args, output_dir, required)
    else:
        package = existing.package(args.t2t_usr_dir)
        problem, given = problem_and_settings(args, existing.problem, package)
        data_dir = args.data_dir or recorded_data_dir(existing, run_dir)
        settings = resumed_settings(existing, run_dir, _given_settings(args))
        if args.random_seed is None:  # the first member's
            seed = settings.random_seed - member
            settings = settings.replace(random_seed=seed)
        settings = settings.replace(output_dir=output_dir)
    registry.models.entry(settings.model)
    return TrainingRequest(problem, given, data_dir, settings, recorded, existing)


def _given_settings(args: argparse.Namespace) -> dict[str, Any]:
    return {
        name: value
        for name in TrainSettings.names()
        if (value := getattr(args, name)) is not None
    }


def _check_begins(args: argparse.Namespace) -> None:
    """Refuse a folder without a run if nothing describes a new one.

    Raises:
        UsageError: If only the folder of a run is given.
    """
    if args.problem is None and args.output_dir is not None and args.data_dir is None:
        raise UsageError(
            f"{args.output_dir} has no run to resume. To begin one, give --problem, "
            "--hparams_set and --data_dir; for the demonstration, leave out "
            "--output_dir."
        )


def _new_settings(
    args: argparse.Namespace, output_dir: str, required: Sequence[str]
) -> TrainSettings:
    """Return the settings of a new run, or of the demonstration.

    Raises:
        UsageError: If a flag is missing.
    """
    given = _given_settings(args) | {"output_dir": output_dir}
    if args.problem is None:
        logger.info("no --problem given: training on %s", DEMO_PROBLEM)
        demonstration: dict[str, Any] = {
            "hparams_set": DEMO_HPARAMS_SET,
            "train_steps": DEMO_TRAIN_STEPS,
        }
        return TrainSettings(**(demonstration | given))
    for name in required:
        if getattr(args, name) is None:
            flags = [f"--{flag}" for flag in required]
            needed = " and ".join(", ".join(flags).rsplit(", ", 1))
            raise UsageError(
                f"--{name} is missing: --problem needs {needed}.\nWithout --problem, "
                "the command uses the demonstration."
            )
    return TrainSettings(**given)
