"""The commands of tensor2tensor, each translated into a command of `t2t`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from t2t_repro.cli.main import run_command, run_reported
from t2t_repro.errors import UsageError
from t2t_repro.features.tensor2tensor import command_bleu, command_line, old_runs
from t2t_repro.features.tensor2tensor.command_flags import (
    COMMANDS,
    FALSE,
    Flag,
    given_flags,
)
from t2t_repro.features.tensor2tensor.command_line import (
    OF_THE_RUN,
    REMEMBERED,
    Translation,
)
from t2t_repro.text_tables import aligned

AVERAGED = "8"  # tensor2tensor's default
NOT_NEEDED = "not needed"
# --schedule of t2t-trainer: a method of `utils/trainer_lib.py: T2TExperiment`.
TRAINING_SCHEDULES = (
    *("train", "train_and_evaluate", "continuous_train_and_eval"),
    "train_eval_and_decode",
)
EVALUATING_SCHEDULES = ("evaluate", "continuous_eval")
_SEARCHES = ("decode", "evaluate", "score", "export")


def translate(old_command: str, arguments: Sequence[str]) -> Translation:
    """Translate a command line of tensor2tensor.

    Args:
        old_command: `t2t-trainer`, `t2t-datagen`, `t2t-decoder`, `t2t-exporter` or
            `t2t-avg-all`.
        arguments: Its flags.

    Raises:
        UsageError: If a flag is unknown, or asks for what `t2t` does not do.
    """
    given = given_flags(old_command, arguments)
    result = Translation(_new_command(old_command, given))
    if result.command in _SEARCHES:
        given = command_line.with_sampling_moved(result, given)
    for name, value in given.items():
        _pass_on(result, COMMANDS[old_command].flags[name], value)
    if result.command in ("train", "datagen"):
        command_line.name_problem(result, given)
    if result.command == "train":
        command_line.describe_training(result, given)
        command_line.add_settings(result, given)
    if result.command in _SEARCHES:
        command_line.describe_search(result, given)
    if result.command == "score":
        command_line.describe_scoring(result, given)
    if result.command == "average":
        result.flags.setdefault("last", AVERAGED)
    return result


def _new_command(old_command: str, given: Mapping[str, str]) -> str:
    """Return the name of the `t2t` command, with positional arguments."""
    if old_command == "t2t-trainer":
        return _trainer_command(given)
    if old_command == "t2t-decoder" and given.get("score_file"):
        return "score"
    if old_command == "t2t-decoder":
        return "decode" if command_line.has_input(given) else "evaluate"
    if old_command == "t2t-datagen":
        return "list problems" if given.get("only_list") == "true" else "datagen"
    return {"t2t-exporter": "export", "t2t-avg-all": "average"}[old_command]


def _trainer_command(given: Mapping[str, str]) -> str:
    if given.get("registry_help") == "true":
        return "list"
    schedule = given.get("schedule", TRAINING_SCHEDULES[0])
    if schedule in EVALUATING_SCHEDULES:
        return "evaluate"
    if schedule not in TRAINING_SCHEDULES:
        known = (
            *TRAINING_SCHEDULES,
            *EVALUATING_SCHEDULES,
        )
        raise UsageError(
            f"--schedule={schedule}: expected one of {', '.join(known)}; "
            "`t2t decode` translates."
        )
    # Version 1.0 had no t2t-decoder.
    decodes = command_line.has_input(given) and given.get("train_steps") == "0"
    return "decode" if decodes else "train"


def _pass_on(result: Translation, flag: Flag, value: str) -> None:
    """Pass a value to the `t2t` command, or report what became of its flag."""
    if not value:
        return
    written = f"--{flag.name}={value}"
    receivers = [name for name in flag.to if name in result.accepted]
    if flag.boolean and value == FALSE[0]:
        result.answer(written, NOT_NEEDED)
    elif flag.kind in ("dropped", "refused"):
        result.answer(written, flag.answer)
    elif flag.to and not receivers:
        answer = flag.answer if flag.kind == "read" else ""
        result.answer_unused(flag.name, value, answer)
    elif flag.kind == "passed":
        result.flags |= dict.fromkeys(receivers, value)


_HELP = ("--help", "-h", "-help", "--helpfull", "--helpshort")
_OWN: dict[str, Callable[[Sequence[str]], int]] = {
    "t2t-bleu": command_bleu.run_bleu,
    "t2t-translate-all": command_bleu.run_translate_all,
}


def run(old_command: str, arguments: Sequence[str]) -> int:
    """Run a command of tensor2tensor.

    Args:
        old_command: Name of the command.
        arguments: Its flags.

    Returns:
        Exit code: 0 good, 1 failed, 2 usage.
    """
    return run_reported(old_command, lambda: _run(old_command, arguments))


def run_named(arguments: Sequence[str]) -> int:
    """Run the command of tensor2tensor that the first argument names."""
    name, *flags = arguments or [""]
    if name in COMMANDS:
        return run(name, flags)
    return run_reported("t2t_repro.features.tensor2tensor", lambda: _refuse(name))


def _refuse(name: str) -> int:
    raise UsageError(
        f"received command {name!r}, expected one of {', '.join(COMMANDS)}."
    )


def _run(old_command: str, arguments: Sequence[str]) -> int:
    if any(argument in _HELP for argument in arguments):
        print(help_text(old_command))
        return 0
    own = _OWN.get(old_command)
    return own(arguments) if own else _run_translated(old_command, arguments)


def _run_translated(old_command: str, arguments: Sequence[str]) -> int:
    translation = translate(old_command, arguments)
    given = given_flags(old_command, arguments)
    first = old_runs.import_arguments(translation, given)
    for line in translation.lines():
        print(f"{old_command}: {line}", file=sys.stderr)
    print(f"{translation.line}  # {old_command}", file=sys.stderr)
    if first is not None:
        print(f"{shlex.join(['t2t', *first])}  # first", file=sys.stderr)
        with redirect_stdout(sys.stderr):
            run_command(first)
    if translation.command == "score":
        command_line.write_sides(
            given["score_file"],
            translation.flags["source"],
            translation.flags["target"],
        )
    return run_command(translation.arguments)


def help_text(old_command: str) -> str:
    """Return the flags of a command, and what became of each."""
    rows = [
        (f"--{flag.name}", explanation(old_command, flag))
        for flag in COMMANDS[old_command].flags.values()
    ]
    usage = f"usage: {old_command} --FLAG=VALUE ..."
    return "\n".join([usage, "", COMMANDS[old_command].summary, "", *aligned(rows)])


def explanation(old_command: str, flag: Flag) -> str:
    """Return what became of a flag of a command, in one line."""
    if flag.kind == "refused":
        values = [value for value in flag.harmless if value]
        unless = f" unless {' or '.join(values)}" if values else ""
        return f"refused{unless}: {flag.answer}"
    accepted = frozenset[str]().union(
        *(Translation(name).accepted for name in COMMANDS[old_command].runs)
    )
    receivers = [f"`--{name}`" for name in flag.to if name in accepted]
    if flag.to and not receivers:
        return REMEMBERED if flag.name in OF_THE_RUN else NOT_NEEDED
    return "; ".join(filter(None, (", ".join(receivers), flag.answer)))


def main() -> int:
    """Run the tensor2tensor command that this process is named after."""
    return run_named([Path(sys.argv[0]).name, *sys.argv[1:]])
