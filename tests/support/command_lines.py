"""Parse command lines of `t2t` by the parsers of its commands."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from t2t_repro.cli.main import COMMANDS, CommandParser

REPOSITORY = Path(__file__).resolve().parents[2]


def parsed(command: str, arguments: Sequence[str]) -> argparse.Namespace:
    """Return the flags of a command.

    Raises:
        UsageError: If the command does not accept them.
    """
    parser = CommandParser(prog=f"t2t {command}")
    importlib.import_module(COMMANDS[command].module).add_flags(parser)
    return parser.parse_args(arguments)


HEAVY = ("tensorflow", "keras", "tensorflow_text", "tensorflow_datasets")
_PROGRAM = """
import contextlib, io, json, sys
from t2t_repro.cli.main import main
heavy = set(sys.argv[2:])
answers = []
for arguments in json.loads(sys.argv[1]):
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(arguments)
    imported = heavy & set(sys.modules)
    if imported:
        sys.exit(f"{arguments} imported {imported}: {errors.getvalue()}")
    answers.append((code, out.getvalue(), errors.getvalue()))
print(json.dumps(answers))
"""


def answers_without_tensorflow(
    commands: Iterable[Sequence[str]], folder: Path, *others: str
) -> list[tuple[int, str, str]]:
    """Run commands in one process, and fail if one of them imports a framework.

    Args:
        commands: Arguments of each command.
        folder: Working directory.
        *others: Further packages that must not be imported.

    Returns:
        The exit code, standard output and standard error of each.
    """
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps([*commands]), *HEAVY, *others],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    assert ended.returncode == 0, ended.stderr
    return [tuple(answer) for answer in json.loads(ended.stdout)]
