"""Entry points of tensor2tensor's commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from t2t_repro.cli.main import run_command, run_reported
from t2t_repro.errors import UsageError
from t2t_repro.features.tensor2tensor import bleu, scoring, tables, translate_all
from t2t_repro.features.tensor2tensor.flags import Flag
from t2t_repro.features.tensor2tensor.shared_flags import NOT_NEEDED
from t2t_repro.features.tensor2tensor.translation import (
    OF_THE_RUN,
    REMEMBERED,
    Translation,
)
from t2t_repro.features.tensor2tensor.translator import given_flags, translate
from t2t_repro.text_tables import aligned

_HELP = ("--help", "-h", "-help", "--helpfull", "--helpshort")
_OWN: dict[str, Callable[[Sequence[str]], int]] = {
    "t2t-bleu": bleu.run,
    "t2t-translate-all": translate_all.run,
}


def run(old_command: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command of tensor2tensor.

    Args:
        old_command: Name of the command.
        arguments: Its flags; by default the process's.

    Returns:
        Exit code: 0 good, 1 failed, 2 usage.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    return run_reported(old_command, lambda: _run(old_command, given))


def run_named(arguments: Sequence[str]) -> int:
    """Run the command of tensor2tensor that the first argument names."""
    name, *flags = arguments or [""]
    if name in tables.COMMANDS:
        return run(name, flags)
    return run_reported("t2t_repro.features.tensor2tensor", lambda: _refuse(name))


def _refuse(name: str) -> int:
    raise UsageError(
        f"received command {name!r}, expected one of {', '.join(tables.COMMANDS)}."
    )


def _run(old_command: str, arguments: Sequence[str]) -> int:
    if any(argument in _HELP for argument in arguments):
        print(help_text(old_command))
        return 0
    own = _OWN.get(old_command)
    return own(arguments) if own else _run_translated(old_command, arguments)


def _run_translated(old_command: str, arguments: Sequence[str]) -> int:
    translation = translate(old_command, arguments)
    for line in translation.lines():
        print(f"{old_command}: {line}", file=sys.stderr)
    print(f"{translation.line}  # {old_command}", file=sys.stderr)
    if translation.command == "score":
        pairs = given_flags(old_command, arguments)["score_file"]
        scoring.write_sides(
            pairs, translation.flags["source"], translation.flags["target"]
        )
    return run_command(translation.arguments)


def help_text(old_command: str) -> str:
    """Return the flags of a command, and what became of each."""
    rows = [
        (f"--{flag.name}", explanation(old_command, flag))
        for flag in tables.COMMANDS[old_command].values()
    ]
    usage = f"usage: {old_command} --FLAG=VALUE ..."
    return "\n".join([usage, "", tables.SUMMARIES[old_command], "", *aligned(rows)])


def explanation(old_command: str, flag: Flag) -> str:
    """Return what became of a flag of a command, in one line."""
    if flag.kind == "refused":
        values = [value for value in flag.harmless if value]
        unless = f" unless {' or '.join(values)}" if values else ""
        return f"refused{unless}: {flag.answer}"
    accepted = frozenset[str]().union(
        *(Translation(name).accepted for name in tables.TARGETS[old_command])
    )
    receivers = [f"`--{name}`" for name in flag.to if name in accepted]
    if flag.to and not receivers:
        return REMEMBERED if flag.name in OF_THE_RUN else NOT_NEEDED
    return "; ".join(filter(None, (", ".join(receivers), flag.answer)))


def trainer() -> int:
    """Run `t2t-trainer`."""
    return run("t2t-trainer")


def datagen() -> int:
    """Run `t2t-datagen`."""
    return run("t2t-datagen")


def decoder() -> int:
    """Run `t2t-decoder`."""
    return run("t2t-decoder")


def exporter() -> int:
    """Run `t2t-exporter`."""
    return run("t2t-exporter")


def avg_all() -> int:
    """Run `t2t-avg-all`."""
    return run("t2t-avg-all")


def bleu_scores() -> int:
    """Run `t2t-bleu`."""
    return run("t2t-bleu")


def translations() -> int:
    """Run `t2t-translate-all`."""
    return run("t2t-translate-all")
