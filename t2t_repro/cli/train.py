"""`t2t train`: prepare data if necessary, train, evaluate, keep checkpoints."""

from __future__ import annotations

import argparse
import logging
import shlex
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from t2t_repro import catalogue
from t2t_repro.cli.data_flags import add_data_flags
from t2t_repro.cli.flags import add_refused_flag, add_setting_flag
from t2t_repro.cli.framework import import_tensorflow
from t2t_repro.cli.training_request import requested_training
from t2t_repro.runs.resuming import check_run_folder, checked_search
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.settings.train_settings import TrainSettings

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.runs import System, TrainResult

logger = logging.getLogger(__name__)

SAMPLES = 3
# Plus the signal's number: as a shell reports a command that a signal ended.
SIGNALLED = 128

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
    check_run_folder(settings, problem.name)
    named_set = catalogue.hparams(settings.hparams_set)
    changes = named_set.diff(named_set.parse(settings.hparams))
    for name, (value, changed) in changes.items():
        logger.info("%s: %s instead of %s", name, changed, value)
    decode_hparams = checked_search(settings, problem)

    import_tensorflow()
    from t2t_repro.data.prepare import open_or_prepare
    from t2t_repro.processor import available_cores
    from t2t_repro.runs import train

    data = open_or_prepare(
        problem,
        request.data_dir,
        request.preparation,
        args.tmp_dir,
        num_workers=args.num_workers or available_cores(),
        show_progress=True,
    )
    result = train(settings, data, show_progress=True)
    if not result.complete:
        logger.info(
            "stopped at step %d of %d; `t2t train --output_dir %s` resumes the run",
            result.steps,
            settings.train_steps,
            shlex.quote(settings.output_dir),
        )
        return SIGNALLED + result.stop_signal if result.stop_signal else 1
    if not result.is_chief:
        return 0
    _print_report(result, data, decode_hparams, with_scores=not args.no_final_score)
    return 0


def _print_report(
    result: TrainResult,
    data: PreparedData,
    decode_hparams: DecodeHParams,
    with_scores: bool,
) -> None:
    """Print the scores of the test split, or of dev, and the next commands."""
    which = "averaged" if result.averaged else "latest"
    split = _scored_split(data.splits)
    if split is None:
        print("trained; no dev or test split to score")
    elif with_scores:
        from t2t_repro.runs import System

        system = System.load(result.output_dir, which)
        _print_scores(system, data, split, decode_hparams)
    print(_next_commands(str(result.output_dir), which, split, decode_hparams))


def _scored_split(splits: Collection[str]) -> str | None:
    return next((name for name in ("test", "dev") if name in splits), None)


def _print_scores(
    system: System, data: PreparedData, split: str, decode_hparams: DecodeHParams
) -> None:
    """Translate a split, and print its scores and a few translations."""
    sources, references = data.raw_text(split)
    hparams = system.with_problem_defaults(decode_hparams)
    evaluation = system.evaluate(sources, references, hparams)
    description = (
        f"{split} ({len(sources)} sentences, beam {hparams.beam_size}, alpha "
        f"{hparams.alpha})"
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
    output_dir: str, which: str, split: str | None, decode_hparams: DecodeHParams
) -> str:
    folder = shlex.quote(output_dir)

    def of_run(command: str) -> str:
        run = f"t2t {command} --output_dir {folder} --checkpoint_path {which}"
        return f"{run}{_decode_hparams_flag(command, decode_hparams)}"

    lines = [
        f"{of_run('decode')} --decode_from_file - --decode_to_file -",
        f"{of_run('evaluate')} --split {split}" if split else "",
        f"{of_run('export')} --export_dir {shlex.quote(f'{output_dir}/export')}",
        f"tensorboard --logdir {folder}",
    ]
    return "\n".join(["\nNext:", *(f"  {line}" for line in lines if line)])


def _decode_hparams_flag(command: str, decode_hparams: DecodeHParams) -> str:
    """Return the flag with the given settings that a command reads, if any."""
    given = ",".join(
        f"{name}={value}"
        for name, value in decode_hparams.values().items()
        if name in decode_hparams.origins
        and command in decode_hparams.about(name).read_by
    )
    return f" {decode_hparams.flag} {shlex.quote(given)}" if given else ""
