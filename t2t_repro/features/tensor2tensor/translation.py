"""A command line of `t2t` that a command line of tensor2tensor became."""

from __future__ import annotations

import importlib
import shlex
from dataclasses import dataclass, field
from functools import cached_property

from t2t_repro.cli.main import COMMANDS, CommandParser

# Flags that only a training run needs: the folder of its run remembers them.
OF_THE_RUN = ("problem", "problems", "model", "hparams_set", "hparams", "data_dir")
REMEMBERED = "not needed: the run in --output_dir remembers it"
# Commands that read a run, whose folder describes the data and the model.
_OF_A_RUN = ("decode", "evaluate", "score", "export", "average")


@dataclass
class Translation:
    """A command line of `t2t`, and what became of flags that are not part of it.

    Attributes:
        command: Name of the `t2t` command, with positional arguments.
        flags: Value by name of a flag of the command.
        answers: Flags of tensor2tensor by the answer that they get.
        notes: Further lines, such as how a problem differs.
    """

    command: str
    flags: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @cached_property
    def accepted(self) -> frozenset[str]:
        """Names of the flags of the `t2t` command."""
        parser = CommandParser()
        module = COMMANDS[self.command.split()[0]].module
        importlib.import_module(module).add_flags(parser)
        return frozenset(flag.removeprefix("--") for flag in parser.flags())

    @property
    def arguments(self) -> list[str]:
        """Arguments of `t2t`."""
        arguments = self.command.split()
        for name, value in self.flags.items():
            arguments += [f"--{name}", value]
        return arguments

    @property
    def line(self) -> str:
        """The command line, to be pasted into a shell."""
        return shlex.join(["t2t", *self.arguments])

    def answer(self, written: str, answer: str) -> None:
        """Add a flag that is left out, as the user wrote it."""
        self.answers.setdefault(answer, []).append(written)

    def answer_unused(self, name: str, value: str, answer: str = "") -> None:
        """Add a flag of which the `t2t` command has no need.

        Args:
            name: Name of the flag.
            value: Value of the flag.
            answer: What replaces it, if something does.
        """
        remembered = name in OF_THE_RUN and self.command in _OF_A_RUN
        unused = answer or f"not needed: `t2t {self.command}` does not use it"
        self.answer(f"--{name}={value}", REMEMBERED if remembered else unused)

    def lines(self) -> list[str]:
        """Return the answers and notes, one line each."""
        answers = [
            f"{', '.join(flags)}: {text}" for text, flags in self.answers.items()
        ]
        return answers + self.notes
