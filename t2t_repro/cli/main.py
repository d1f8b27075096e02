"""The table of commands, and how their errors are reported.

Only the module of the requested command is imported, so that help and usage errors
appear at once.
"""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

from t2t_repro import __version__
from t2t_repro.errors import UsageError, UserError, unknown_name
from t2t_repro.features import Command, declared
from t2t_repro.files import check_local_path

# The commands of the core, in the order of use.
_CORE = {
    "list": Command(
        "t2t_repro.cli.list", "name problems, hparams sets, models, attentions"
    ),
    "show": Command(
        "t2t_repro.cli.show", "explain one of them; compare two hparams sets"
    ),
    "datagen": Command(
        "t2t_repro.cli.datagen", "turn a problem's text into training data"
    ),
    "train": Command(
        "t2t_repro.cli.train", "train a model; without flags, a demonstration"
    ),
    "decode": Command("t2t_repro.cli.decode", "translate a file or standard input"),
    "score": Command("t2t_repro.cli.score", "log-probabilities of given translations"),
    "evaluate": Command("t2t_repro.cli.evaluate", "score a trained model"),
    "average": Command(
        "t2t_repro.cli.average", "average the last checkpoints of a run"
    ),
    "import": Command(
        "t2t_repro.cli.import_model", "make a run of a model trained elsewhere"
    ),
    "export": Command("t2t_repro.cli.export", "write a trained model for serving"),
}


def _commands() -> dict[str, Command]:
    """Return the commands of the core and of the features, in the order of the help."""
    added = {
        name: command
        for feature in declared().values()
        for name, command in feature.commands.items()
    }
    found = {}
    for core, command in _CORE.items():
        found.update({n: c for n, c in added.items() if c.before == core})
        found[core] = command
    return found | {n: c for n, c in added.items() if c.before not in _CORE}


COMMANDS = _commands()

# 128 + the signal's number, as a shell reports a command that a signal ended.
INTERRUPTED = 130
BROKEN_PIPE = 141

# Of the words that the help shows for a flag's value
_NAMES_A_PATH = re.compile(r"\b(DIR|FILE|PATH|RUN|CHECKPOINT)\b")


class CommandParser(argparse.ArgumentParser):
    """A parser that raises `UsageError` and never guesses flags."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def parse_known_args(self, *args, **kwargs) -> tuple[argparse.Namespace, list[str]]:
        """Parse as argparse does, and refuse the paths of remote storage."""
        flags, unknown = super().parse_known_args(*args, **kwargs)
        for action in self._actions:
            if _NAMES_A_PATH.search(str(action.metavar)):
                name = (action.option_strings or [action.dest])[0]
                given = getattr(flags, action.dest, None)
                for path in given if isinstance(given, list) else [given]:
                    check_local_path(path or "", name)
        return flags, unknown

    def error(self, message: str) -> NoReturn:
        """Raise the message that argparse would print with the whole usage."""
        raise UsageError(f"{message}.\n`{self.prog} --help` shows the accepted flags.")

    def flags(self) -> list[str]:
        """Return the long flags, as the usage names them."""
        return sorted(set(re.findall(r"--[a-z][\w-]*", self.format_usage())))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The command line without the program's name; by default the process's.

    Returns:
        Exit code: 0 = success, 1 = failure, 2 = wrong usage.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0].startswith("-"):
        return run_reported("t2t", lambda: _top_level(arguments))
    prog = f"t2t {arguments[0]}" if arguments[0] in COMMANDS else "t2t"
    return run_reported(prog, lambda: run_command(arguments))


def run_reported(prog: str, action: Callable[[], int]) -> int:
    """Run an action of the command line, and report its errors without a traceback.

    Args:
        prog: Name of the program, for messages.
        action: Returns the exit code.

    Returns:
        Exit code.
    """
    _open_closed_streams()
    _escape_unencodable()
    try:
        with _log_to_stderr(), redirect_stdout(sys.stdout and guarded(sys.stdout)):
            code = action()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except UserError as error:
        _report(prog, error)
        return error.exit_code
    except KeyboardInterrupt:
        _report(prog, "interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except Exception as error:
        from t2t_repro.user_packages import as_user_error

        if isinstance(error, OSError) and not error.filename:
            error.filename = "cannot write standard output"
            _discard_stdout()
        reported = as_user_error(error)
        if reported is None:
            raise
        _report(prog, reported)
        return reported.exit_code


def _report(prog: str, error: object) -> None:
    print(f"{prog}: {error}", file=guarded(sys.stderr))


def _top_level(arguments: Sequence[str]) -> int:
    """Answer `t2t`, `t2t --help`, `t2t --version` and flags before a command."""
    parser = CommandParser(
        prog="t2t",
        description="Attention Is All You Need, from text to a served translator.",
        epilog="`t2t COMMAND --help` explains a command's flags.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, command in COMMANDS.items():
        subparsers.add_parser(name, help=command.summary)
    try:
        parser.parse_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    parser.print_help(sys.stderr)
    return UsageError.exit_code


def run_command(arguments: Sequence[str]) -> int:
    """Run one command; its errors propagate.

    Args:
        arguments: The command's name and its flags.

    Returns:
        Exit code.

    Raises:
        UserError: If the user can correct it.
    """
    command = arguments[0]
    if command not in COMMANDS:
        raise unknown_name(
            "command", command, COMMANDS, "`t2t --help` lists the commands."
        )
    # TensorFlow writes device banners to stderr unless this is set before its import;
    # without a GPU driver, it would report the missing driver as an error.
    has_driver = Path("/proc/driver/nvidia").exists()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2" if has_driver else "3")
    # Data, training and export are TensorFlow; keras.json may name another backend.
    os.environ["KERAS_BACKEND"] = "tensorflow"
    module = importlib.import_module(COMMANDS[command].module)
    parser = CommandParser(prog=f"t2t {command}", description=module.DESCRIPTION)
    module.add_flags(parser)
    try:
        flags, unknown = parser.parse_known_args(arguments[1:])
    except SystemExit as stop:
        return int(stop.code or 0)
    if unknown:
        raise _unknown_argument(parser, unknown[0])
    return module.run(flags)


def _unknown_argument(parser: CommandParser, argument: str) -> UsageError:
    how_to_list = f"`{parser.prog} --help` shows the accepted flags."
    if not argument.startswith("-"):
        return UsageError(f"unexpected argument {argument!r}.\n{how_to_list}")
    name = argument.partition("=")[0]
    return unknown_name("flag", name, parser.flags(), how_to_list)


@contextmanager
def _log_to_stderr() -> Generator[None]:
    """Show the package's log on stderr while a command runs."""
    logger = logging.getLogger("t2t_repro")
    handler = logging.StreamHandler(guarded(sys.stderr))
    handler.setFormatter(logging.Formatter("%(message)s"))
    # TensorFlow adds a handler to the root logger, which would print lines twice.
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def _open_closed_streams() -> None:
    """Open the null device for standard streams that the shell closed (`2>&-`).

    Otherwise, another file would get the descriptor. Python has None for such a stream.
    A closed stderr discards messages. A closed stdout stays None, so that writing
    results to it is an error and they are not lost.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, number)
            if nowhere != number:
                os.close(nowhere)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def _escape_unencodable() -> None:
    """Escape characters that the encoding of standard output lacks.

    Without this, printing a sample translation could end a training run with an error.
    """
    stdout = sys.stdout
    if isinstance(stdout, io.TextIOWrapper) and stdout.errors == "strict":
        stdout.reconfigure(errors="backslashreplace")


def _discard_stdout() -> None:
    """Keep Python from writing at exit what standard output did not take."""
    with suppress(OSError):  # from Python, standard output may not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# C0 without TAB and LF, DEL, C1, and the embeddings, overrides and isolates of
# Unicode's bidirectional algorithm.
_CONTROLS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u202a-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    r"""Write characters that control a terminal as escapes, such as `\x1b`."""
    return _CONTROLS.sub(lambda m: ascii(m.group())[1:-1], text)


def guarded(stream: TextIO) -> TextIO:
    """Wrap the stream of a terminal to escape its text; return others as they are."""
    return cast("TextIO", _Guard(stream)) if stream.isatty() else stream


class _Guard:
    """Stream of a terminal that escapes its text."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(escaped(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


if __name__ == "__main__":
    sys.exit(main())
