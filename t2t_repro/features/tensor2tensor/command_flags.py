"""The flags of tensor2tensor's commands, read in absl's spellings.

`data/flags.toml` says what became of each flag; `--help` of the old commands shows it.

Source: absl-py's `flags` and TensorFlow 1's `tf.flags`, which accepted
`--flag=value`, `--flag value`, `-flag value`, and for booleans `--flag`, `--noflag`
and `--flag=false`. Today's absl-py refuses `--job-dir` and `--flag false`, which old
scripts have, and does not tell the order of the flags.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from t2t_repro.errors import UsageError, unknown_name

# The texts that absl accepts as booleans.
TRUE = ("true", "t", "1", "yes", "y")
FALSE = ("false", "f", "0", "no", "n")

Kind = Literal["passed", "read", "dropped", "refused"]


@dataclass(frozen=True)
class Flag:
    """A flag of tensor2tensor and its counterpart here.

    Attributes:
        name: Name of the flag.
        kind: "passed" = a flag of the `t2t` command receives the value; "read" = the
            translator reads it; "dropped" = nothing has to replace it; "refused" =
            a value outside `harmless` ends the command, because it asks for a result
            that the `t2t` command would not produce.
        to: Names of the flags of a `t2t` command that receive the value.
        answer: Replacement of the flag, or the reason why it needs none.
        boolean: Whether the flag needs no value.
        path: Whether the value is a path, in which "~" is the home folder.
        harmless: Values of a refused flag that ask for nothing.
    """

    name: str
    kind: Kind
    to: tuple[str, ...] = ()
    answer: str = ""
    boolean: bool = False
    path: bool = False
    harmless: tuple[str, ...] = ()


class OldCommand(NamedTuple):
    """A command of tensor2tensor.

    Attributes:
        summary: What it runs.
        runs: Names of the `t2t` commands that it can run.
        flags: Its flags by name.
    """

    summary: str
    runs: tuple[str, ...]
    flags: Mapping[str, Flag]


def _flags_of(lines: Iterable[Mapping[str, Any]]) -> Iterator[Flag]:
    """Yield the flags of some lines of the table."""
    for line in lines:
        kind = next(kind for kind in get_args(Kind) if kind in line)
        answer = line.get("answer", "")
        for written in line[kind].split():
            name = written.removeprefix(_BOOLEAN)
            boolean = name != written
            harmless = FALSE[:1] if boolean else ("", *line.get("harmless", ()))
            yield Flag(
                name,
                kind,
                to=tuple(line.get("to", name if kind == "passed" else "").split()),
                answer=_TABLE["answers"].get(answer, answer),
                boolean=boolean,
                path=line.get("path", False),
                harmless=harmless if kind == "refused" else (),
            )


def _command(
    summary: str, runs: Iterable[str], shared: Iterable[str] = (), flags: Any = ()
) -> OldCommand:
    groups = [*(_TABLE["shared"][name] for name in shared), flags]
    known = itertools.chain.from_iterable(map(_flags_of, groups))
    return OldCommand(summary, tuple(runs), {flag.name: flag for flag in known})


_BOOLEAN = "[no]"
_FILE = resources.files("t2t_repro.features.tensor2tensor") / "data" / "flags.toml"
_TABLE = tomllib.loads(_FILE.read_text(encoding="utf-8"))
COMMANDS = {name: _command(**values) for name, values in _TABLE["commands"].items()}


def given_flags(old_command: str, arguments: Sequence[str]) -> dict[str, str]:
    """Return the flags of a command of tensor2tensor, with "~" replaced in paths.

    Raises:
        UsageError: If a flag is unknown, or asks for what `t2t` does not do.
    """
    known = COMMANDS[old_command].flags
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


def read_flags(
    arguments: Sequence[str], flags: Mapping[str, Flag], how_to_list: str
) -> dict[str, str]:
    """Return the value by flag; of a repeated flag the last one, as absl does.

    Booleans become "true" or "false".

    Args:
        arguments: The command line without the program's name.
        flags: All flags by name.
        how_to_list: Next step after an unknown flag, for messages.

    Raises:
        UsageError: If a flag is unknown or its value is missing.
    """
    given: dict[str, str] = {}
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if not argument.startswith("-") or not argument.strip("-"):
            raise UsageError(
                f"unexpected argument {argument!r}, expected flags.\n{how_to_list}"
            )
        written, equals, value = argument.lstrip("-").partition("=")
        name, negated = _known_name(written, flags, how_to_list)
        if negated:
            value = FALSE[0]
        elif flags[name].boolean:
            if not equals:
                is_next = bool(waiting) and _is_boolean(waiting[0])
                value = waiting.pop(0) if is_next else TRUE[0]
            value = _boolean(name, value)
        elif not equals:
            if not waiting:
                raise UsageError(f"--{name}: received no value, expected one.")
            value = waiting.pop(0)
        # A repeated flag counts where it is given last.
        given.pop(name, None)
        given[name] = value
    return given


def min_steps(given: Mapping[str, str]) -> int:
    """Return the step that `--min_steps` names, by default 0.

    Raises:
        UsageError: If it is not a whole number.
    """
    text = given.get("min_steps") or "0"
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--min_steps={text}: expected a whole number.") from None


def _known_name(
    written: str, flags: Mapping[str, Flag], how_to_list: str
) -> tuple[str, bool]:
    """Return the name of a flag, and whether "no" precedes it."""
    name = written.replace("-", "_")
    if name in flags:
        return name, False
    positive = name.removeprefix("no")
    if positive in flags and flags[positive].boolean:
        return positive, True
    known = [f"--{name}" for name in flags]
    raise unknown_name("flag", f"--{written}", known, how_to_list)


def _is_boolean(text: str) -> bool:
    return text.lower() in (*TRUE, *FALSE)


def _boolean(name: str, text: str) -> str:
    if not _is_boolean(text):
        raise UsageError(f"--{name}: received {text!r}, expected true or false.")
    return TRUE[0] if text.lower() in TRUE else FALSE[0]
