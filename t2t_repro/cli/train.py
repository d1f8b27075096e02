"""`t2t train`: prepare data if necessary, train, evaluate, keep checkpoints."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro import registry
from t2t_repro.cli.data_flags import add_data_flags, problem_and_settings
from t2t_repro.cli.evaluate import DEFAULT_SPLIT
from t2t_repro.cli.flags import add_refused_flag, add_setting_flag
from t2t_repro.cli.loading import import_tensorflow
from t2t_repro.data.problem import Problem
from t2t_repro.errors import UsageError
from t2t_repro.features import modules
from t2t_repro.files import has_pattern
from t2t_repro.runs.resuming import recorded_data_dir, resumed_settings
from t2t_repro.runs.run import Run, member_folders, run_group
from t2t_repro.runs.training_config import TrainingConfig
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.train_settings import TrainSettings
from t2t_repro.text_tables import quantity
from t2t_repro.training.checkpoint_paths import all_checkpoints
from t2t_repro.training.signals import SIGNALLED

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs import System, TrainResult

logger = logging.getLogger(__name__)

DEMO_PROBLEM = "translate_ende_synthetic"
DEMO_HPARAMS_SET = "transformer_tiny"
DEMO_FOLDER = Path("t2t_demo")
DEMO_TRAIN_STEPS = 1300
NEEDED_TO_TRAIN = ("hparams_set", "data_dir", "output_dir")

DESCRIPTION = (
    "Train a model. Without flags: the embedded problem and a tiny set, about ten "
    "minutes on two CPU cores. To resume a run, give only its --output_dir; to train "
    "it further, add a higher --train_steps.\n\n"
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
    other_ways = modules("trainers").values()
    asked = (module.requested(args, settings) for module in other_ways)
    other_way = next(filter(None, asked), None)
    if other_way is not None:
        config = other_way.check(problem)
    else:
        config = TrainingConfig.from_settings(settings, problem)
    for name, (value, changed) in config.changed_hparams.items():
        logger.info("%s: %s instead of %s", name, changed, value)

    import_tensorflow()
    from t2t_repro.data.prepare import open_or_prepare
    from t2t_repro.machine import available_cores
    from t2t_repro.runs.run_training import run_training

    data = open_or_prepare(
        problem,
        request.data_dir,
        request.preparation,
        args.tmp_dir,
        num_workers=args.num_workers or available_cores(),
        show_progress=True,
    )
    if other_way is not None:
        results = other_way.train(data)
    else:
        results = [run_training(config, data, show_progress=True)]
    if not all(result.complete for result in results):
        return _report_stop(results, settings)
    if results[0].is_chief:
        print_report(
            Path(settings.output_dir),
            results,
            data,
            config.decode_hparams,
            with_scores=not args.no_final_score,
        )
    return 0


@dataclasses.dataclass(frozen=True)
class TrainingRequest:
    """The training run that the flags of a command request.

    Attributes:
        problem: The problem, with the user's files if there are any.
        preparation: Given values of `PrepareSettings` by name.
        data_dir: Folder of the prepared data.
        settings: Settings of the training run.
        existing: Run in the folder, or None; it completes the settings. In the folder
            of an ensemble, the run of a member.
    """

    problem: Problem
    preparation: dict[str, Any]
    data_dir: str | Path
    settings: TrainSettings
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
    existing, run_dir, member = None, Path(output_dir), 0
    if args.output_dir is not None or args.problem is None:
        for number, folder in enumerate(member_folders(output_dir) or [run_dir]):
            run = Run.load(folder)
            # A run that the user describes in full and that ended before its first
            # checkpoint has nothing to resume, and its settings may be why it ended.
            if run and (args.problem is None or all_checkpoints(folder)):
                existing, run_dir, member = run, folder, number
                break
    if existing is None:
        _check_new_run(args)
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
    return TrainingRequest(problem, given, data_dir, settings, existing)


def _given_settings(args: argparse.Namespace) -> dict[str, Any]:
    return {
        name: value
        for name in TrainSettings.names()
        if (value := getattr(args, name)) is not None
    }


def _check_new_run(args: argparse.Namespace) -> None:
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


def _report_stop(results: Sequence[TrainResult], settings: TrainSettings) -> int:
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


SAMPLES = 3


def print_report(
    output_dir: Path,
    results: Sequence[TrainResult],
    data: PreparedData,
    decode_hparams: DecodeHParams,
    *,
    with_scores: bool,
) -> None:
    """Print the scores of the test split, or of dev, and the next commands.

    Args:
        output_dir: Folder of the run or of the ensemble.
        results: The outcome of the run, or those of the members.
        data: Prepared data of the training run.
        decode_hparams: Settings of the search, as given.
        with_scores: Whether to translate and score.
    """
    from t2t_repro.runs import System

    split = next((name for name in ("test", "dev") if name in data.splits), None)
    if split is None:
        print("trained; no dev or test split to score")
    elif with_scores:
        if len(results) > 1:
            system = run_group(output_dir).load_ensemble(output_dir)
        else:
            system = System.load(output_dir)
        _print_scores(system, data, split, decode_hparams)
    print(_next_commands(str(output_dir), split, decode_hparams))


def _print_scores(
    system: System, data: PreparedData, split: str, decode_hparams: DecodeHParams
) -> None:
    """Translate a split, and print its scores and a few translations."""
    sources, references = data.raw_text(split)
    hparams = system.with_problem_defaults(decode_hparams)
    evaluation = system.evaluate(sources, references, hparams)
    description = (
        f"{split} ({quantity(len(sources), 'sentence')}, beam {hparams.beam_size}, "
        f"alpha {hparams.alpha})"
    )
    print("\n".join(evaluation.scores.lines(description)))
    print(_samples_text(sources, evaluation.hypotheses, references))


def _samples_text(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> str:
    """Format a few translations, spread evenly over the split."""
    lines = []
    for number in range(0, len(sources), max(len(sources) // SAMPLES, 1))[:SAMPLES]:
        lines += [
            f"\nsource       {sources[number]}",
            f"translation  {hypotheses[number]}",
            f"reference    {references[number]}",
        ]
    return "\n".join(lines)


def _next_commands(
    output_dir: str, split: str | None, decode_hparams: DecodeHParams
) -> str:
    """Return the shortest commands that use a run or an ensemble as it was scored."""
    folder = shlex.quote(output_dir)

    def of_run(command: str) -> str:
        search = _decode_hparams_flag(command, decode_hparams)
        return f"t2t {command} --output_dir {folder}{search}"

    # `t2t export` refuses some folders that training accepts.
    refused = has_pattern(Path(output_dir).absolute())
    export_dir = "DIR" if refused else shlex.quote(f"{output_dir}/export")
    lines = [
        of_run("decode"),
        f"{of_run('evaluate')}{_split_flag(split)}" if split else "",
        f"{of_run('export')} --export_dir {export_dir}",
        f"tensorboard --logdir {folder}",
    ]
    return "\n".join(["\nNext:", *(f"  {line}" for line in lines if line)])


def _split_flag(split: str) -> str:
    return "" if split == DEFAULT_SPLIT else f" --split {split}"


def _decode_hparams_flag(command: str, decode_hparams: DecodeHParams) -> str:
    """Return the flag with the given settings that a command reads, if any."""
    given = ",".join(
        f"{name}={value}"
        for name, value in decode_hparams.values().items()
        if name in decode_hparams.origins
        and command in decode_hparams.about(name).read_by
    )
    return f" {decode_hparams.flag} {shlex.quote(given)}" if given else ""
