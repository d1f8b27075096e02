"""Translate a command line of tensor2tensor into one of `t2t`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from t2t_repro.errors import UsageError
from t2t_repro.features.tensor2tensor import (
    scoring,
    search,
    shared_flags,
    tables,
    training,
)
from t2t_repro.features.tensor2tensor.flags import FALSE, Flag, read_flags
from t2t_repro.features.tensor2tensor.translation import Translation

AVERAGED = "8"  # tensor2tensor's default
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
        given = search.with_sampling_moved(result, given)
    for name, value in given.items():
        _pass_on(result, tables.COMMANDS[old_command][name], value)
    if result.command in ("train", "datagen"):
        training.name_problem(result, given)
    if result.command == "train":
        training.describe(result, given)
        search.add_settings(result, given)
    if result.command in _SEARCHES:
        search.describe(result, given)
    if result.command == "score":
        scoring.describe(result, given)
    if result.command == "average":
        result.flags.setdefault("last", AVERAGED)
    return result


def given_flags(old_command: str, arguments: Sequence[str]) -> dict[str, str]:
    """Return the flags of a command of tensor2tensor, with "~" replaced in paths.

    Raises:
        UsageError: If a flag is unknown, or asks for what `t2t` does not do.
    """
    known = tables.COMMANDS[old_command]
    given = read_flags(
        arguments, known, f"`{old_command} --help` shows what became of every flag."
    )
    for name, value in given.items():
        flag = known[name]
        if flag.kind == "refused" and value not in flag.harmless:
            raise UsageError(f"--{name}={value}: {flag.answer}.")
        if flag.path and value:
            # The shell leaves "~" as it is after "=".
            given[name] = str(Path(value).expanduser())
    return given


def _new_command(old_command: str, given: Mapping[str, str]) -> str:
    """Return the name of the `t2t` command, with positional arguments."""
    if old_command == "t2t-trainer":
        return _of_trainer(given)
    if old_command == "t2t-decoder" and given.get("score_file"):
        return "score"
    if old_command == "t2t-decoder":
        return "decode" if search.has_input(given) else "evaluate"
    if old_command == "t2t-datagen":
        return "list problems" if given.get("only_list") == "true" else "datagen"
    return {"t2t-exporter": "export", "t2t-avg-all": "average"}[old_command]


def _of_trainer(given: Mapping[str, str]) -> str:
    if given.get("registry_help") == "true":
        return "list"
    schedule = given.get("schedule", shared_flags.TRAINING_SCHEDULES[0])
    if schedule in shared_flags.EVALUATING_SCHEDULES:
        return "evaluate"
    if schedule not in shared_flags.TRAINING_SCHEDULES:
        known = (*shared_flags.TRAINING_SCHEDULES, *shared_flags.EVALUATING_SCHEDULES)
        raise UsageError(
            f"--schedule={schedule}: expected one of {', '.join(known)}; "
            "`t2t decode` translates."
        )
    # Version 1.0 had no t2t-decoder.
    decodes = search.has_input(given) and given.get("train_steps") == "0"
    return "decode" if decodes else "train"


def _pass_on(result: Translation, flag: Flag, value: str) -> None:
    """Pass a value to the `t2t` command, or answer what became of its flag."""
    if not value:
        return
    written = f"--{flag.name}={value}"
    receivers = [name for name in flag.to if name in result.accepted]
    if flag.boolean and value == FALSE[0]:
        result.answer(written, shared_flags.NOT_NEEDED)
    elif flag.kind in ("dropped", "refused"):
        result.answer(written, flag.answer)
    elif flag.to and not receivers:
        answer = flag.answer if flag.kind == "read" else ""
        result.answer_unused(flag.name, value, answer)
    elif flag.kind == "passed":
        result.flags |= dict.fromkeys(receivers, value)
