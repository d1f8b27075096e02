"""Lines of text from a file or standard input, and to a file or standard output."""

from __future__ import annotations

import argparse
import gzip
import itertools
import logging
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from t2t_repro.cli.live_input import LiveLines, TypedLines
from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import atomic_file
from t2t_repro.text_tables import aligned, fitted

logger = logging.getLogger(__name__)

STANDARD_STREAM = "-"
STANDARD_INPUT = "standard input"
SECONDS_FOR_A_PIPE = 0.2  # long enough for `cat file |` to end


def on_terminal() -> bool:
    """Return whether a person reads standard output."""
    return sys.stdout is not None and sys.stdout.isatty()


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns of a table; on a terminal, fit it into the width."""
    if not on_terminal():
        return aligned(rows)
    return fitted(rows, shutil.get_terminal_size().columns)


def read_input(name: str) -> list[str]:
    """Read the lines of a file, a pipe or, for "-", of standard input.

    Raises:
        UserError: If it cannot be read, or is not UTF-8 text.
    """
    if name != STANDARD_STREAM:
        if not Path(name).is_fifo():
            return _lines_of(Path(name))
        with Path(name).open("rb") as stream:
            return _lines_of_stream(stream, name)
    if sys.stdin is None:
        raise UserError("standard input is closed: give a file.")
    return _lines_of_stream(sys.stdin.buffer, STANDARD_INPUT)


def _lines_of_stream(stream: BinaryIO, name: str) -> list[str]:
    """Read a stream to its end, by way of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        try:
            with path.open("wb") as file:
                shutil.copyfileobj(stream, file)
        except OSError as error:
            raise UserError(
                f"cannot copy {name} to {folder}: {error.strerror or error}."
            ) from error
        return _lines_of(path, piped_from=name)


def add_output_format_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--output_format`."""
    parser.add_argument(
        "--output_format",
        choices=("text", "json"),
        default="text",
        help="plain lines (default), or one JSON object per line",
    )


def open_input(name: str) -> list[str] | LiveLines | TypedLines:
    """Open a file, a pipe or, for "-", standard input, which may stay open.

    Returns:
        All lines, or the lines of a terminal or pipe as they arrive. A pipe that ends
        at once is read like a file, so that its errors are reported first.

    Raises:
        UserError: If it cannot be read, or is not UTF-8 text.
    """
    descriptor = _open_live(name)
    if descriptor is None:
        return read_input(name)
    is_standard, is_terminal = name == STANDARD_STREAM, os.isatty(descriptor)
    if is_standard and is_terminal and sys.stderr.isatty():
        return TypedLines(STANDARD_INPUT)
    live = LiveLines(descriptor, STANDARD_INPUT if is_standard else name)
    lines = None if is_terminal else live.all_within(SECONDS_FOR_A_PIPE)
    return live if lines is None else lines


def _open_live(name: str) -> int | None:
    """Return the descriptor of a terminal or pipe; None for regular files."""
    try:
        if name == STANDARD_STREAM:
            descriptor = sys.stdin.fileno()
        elif Path(name).is_fifo() or Path(name).is_char_device():
            descriptor = os.open(name, os.O_RDONLY)
        else:
            return None
    except (AttributeError, OSError):
        # Closed, or not a stream of the operating system.
        return None
    return None if stat.S_ISREG(os.fstat(descriptor).st_mode) else descriptor


def _lines_of(path: Path, piped_from: str | None = None) -> list[str]:
    from t2t_repro.data.text_files import read_lines

    return list(read_lines(path, piped_from, allow_empty=True))


def check_writable(flag: str, name: str) -> None:
    """Refuse an output file that cannot be written, before any work is done.

    Raises:
        UserError: If its folder does not exist or is not writable, or standard output
            is closed.
    """
    if name == STANDARD_STREAM and sys.stdout is None:
        raise UserError(f"standard output is closed: give {flag}.")
    path = Path(name)
    written_to = path if _is_device(path) else path.parent
    if name != STANDARD_STREAM and (
        path.is_dir() or not os.access(written_to, os.W_OK)
    ):
        raise UserError(
            f"received {flag} {name}, expected a file in an existing folder "
            "that can be written to."
        )


def check_read_once(inputs: Iterable[str | None]) -> None:
    """Refuse standard input as several inputs, because it can be read only once.

    Raises:
        UsageError: If it is named more than once.
    """
    if list(inputs).count(STANDARD_STREAM) > 1:
        raise UsageError(
            f"received {STANDARD_STREAM} as several inputs, expected it once: standard "
            "input can be read only once."
        )


def named_references(
    names: Iterable[str], streams: Iterable[list[str]]
) -> list[tuple[str, list[str]]]:
    """Return the texts of `--reference` for `warn_of_equal_texts`."""
    flags = (f"--reference {name}" for name in names)
    return [*zip(flags, streams, strict=True)]


def warn_of_equal_texts(texts: Iterable[tuple[str, list[str]]]) -> None:
    """Log which texts of an evaluation have the same lines, which is rarely meant.

    Args:
        texts: Names and lines.
    """
    for (one, lines), (other, others) in itertools.combinations(texts, 2):
        if lines == others and any(lines):
            logger.warning(
                "%s and %s have the same lines: is one of them the wrong file?",
                one,
                other,
            )


def check_replaces_no_input(
    flag: str, output: str | None, inputs: Iterable[str | None]
) -> None:
    """Refuse an output file that is one of the inputs, which would be lost.

    Raises:
        UsageError: If it is one.
    """
    if output in (None, STANDARD_STREAM):
        return
    path = Path(output).resolve()
    for name in inputs:
        if name not in (None, STANDARD_STREAM) and path == Path(name).resolve():
            raise UsageError(
                f"received {flag} {output}, which is also an input, expected another "
                "file: the input would be lost."
            )


def _is_device(path: Path) -> bool:
    """Return whether a path is a device or a pipe, which must not be replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def write_lines(name: str, lines: Iterable[str]) -> None:
    """Write lines as they come, to a file or, for "-", to standard output.

    A file gets its name when it is complete; until then its lines are in a file beside
    it. If the name is a link, the file that it points to is replaced. A file whose name
    ends in `.gz` is compressed.

    Args:
        name: File, device, pipe, or "-".
        lines: Lines without line breaks.

    Raises:
        UserError: If writing fails; an incomplete file is removed.
    """
    path = Path(name)
    try:
        if name == STANDARD_STREAM and sys.stdout.isatty():
            for line in lines:
                print(line, flush=True)
        elif name == STANDARD_STREAM:
            _write(sys.stdout.buffer, lines)
        elif _is_device(path):
            with path.open("wb") as file:
                _write(file, lines)
        else:
            _write_file(path, lines)
    except BrokenPipeError:
        raise
    except OSError as error:
        place = "standard output" if name == STANDARD_STREAM else name
        raise UserError(f"cannot write {place}: {error.strerror or error}.") from error


def _write_file(path: Path, lines: Iterable[str]) -> None:
    with atomic_file(path.resolve()) as file:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped:
                zipped.writelines(f"{line}\n".encode() for line in lines)
        else:
            _write(file, lines)


def _write(file: BinaryIO, lines: Iterable[str]) -> None:
    for line in lines:
        file.write(f"{line}\n".encode())
        file.flush()
