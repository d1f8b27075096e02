"""Run an engine in its own process and interpreter, and ask it one thing at a time."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ANSWER = "ANSWER "  # the start of a line with an answer; other output is ignored
LINES_OF_ERRORS = 20


class Child:
    """A process that answers requests, and that is stopped between them.

    The process reads requests from standard input, one per line, and answers with a
    line of JSON after "ANSWER ". SIGSTOP makes sure that it uses no processor while
    other engines are measured, for example to load a model or to read data ahead.

    Args:
        command: Program and arguments.
        errors: File for the process's standard error.
    """

    def __init__(self, command: Sequence[str | Path], errors: IO[str]) -> None:
        self._errors = errors
        self._process = subprocess.Popen(
            [*map(str, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        self._process.send_signal(signal.SIGSTOP)

    def ask(self, request: object) -> dict[str, Any]:
        """Send a request and return the answer.

        Raises:
            RuntimeError: If the process ends. The message has its last errors.
        """
        self._process.send_signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{request}\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                self._process.send_signal(signal.SIGSTOP)
                return json.loads(line.removeprefix(ANSWER))
        self._process.wait()
        self._errors.seek(0)
        last = self._errors.read().splitlines()[-LINES_OF_ERRORS:]
        raise RuntimeError("\n".join([f"{self._process.args} ended:", *last]))

    def kill(self) -> None:
        """End the process, even if it is stopped."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            # There may be a request left to flush.
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@contextlib.contextmanager
def children(
    commands: Mapping[str, Sequence[str | Path]],
) -> Iterator[dict[str, Child]]:
    """Start a process per engine, and kill them at the end, also after SIGTERM.

    Args:
        commands: Program and arguments of each engine, by name.

    Yields:
        The processes by name.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGTERM, before)
        started = {}
        for name, command in commands.items():
            errors = stack.enter_context(tempfile.TemporaryFile("w+"))
            started[name] = Child(command, errors)
            stack.callback(started[name].kill)
        yield started
