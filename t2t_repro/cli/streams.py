"""Lines of text from a file, a terminal or a pipe, and to a file or standard output."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import logging
import os
import queue
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from t2t_repro.data.text_files import stream_lines
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
            return _read_stream(stream, name)
    if sys.stdin is None:
        raise UserError("standard input is closed: give a file.")
    return _read_stream(sys.stdin.buffer, STANDARD_INPUT)


def _read_stream(stream: BinaryIO, name: str) -> list[str]:
    """Read a stream to its end, through a temporary file."""
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
    descriptor = _live_descriptor(name)
    if descriptor is None:
        return read_input(name)
    is_standard, is_terminal = name == STANDARD_STREAM, os.isatty(descriptor)
    if is_standard and is_terminal and sys.stderr.isatty():
        return TypedLines(STANDARD_INPUT)
    live = LiveLines(descriptor, STANDARD_INPUT if is_standard else name)
    lines = None if is_terminal else live.all_within(SECONDS_FOR_A_PIPE)
    return live if lines is None else lines


def _live_descriptor(name: str) -> int | None:
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


def check_output(flag: str, name: str) -> None:
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
    """Warn of texts of an evaluation with the same lines, which is rarely intended.

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
        UsageError: If the output is one of the inputs.
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

    Lines go to a temporary file beside the output, which is renamed when it is
    complete. If the name is a link, the file that it points to is replaced. A file
    whose name ends in `.gz` is compressed.

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


PROMPT = "> "
_BLOCK = 2**16  # bytes read at once
MOST_WAITING = 2**16  # lines read ahead; then the writer has to wait


class LiveLines:
    """Lines of a stream that may stay open. A thread reads them as they arrive.

    Args:
        descriptor: File descriptor of a terminal or pipe.
        name: Name of the stream for messages.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name
        # None is the end of the stream.
        self._arrived: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self._error: UserError | None = None
        self._ended = threading.Event()
        # A daemon does not keep the process alive while it waits for input.
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for line in stream_lines(self._blocks(), self._name):
                self._arrived.put(line)
        except UserError as error:
            self._error = error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self._error = UserError(f"cannot read {self._name}: {reason}.")
        except Exception as error:
            # The main thread waits for the end of the stream.
            self._error = UserError(f"cannot read {self._name}: {error!r}.")
        self._arrived.put(None)
        self._ended.set()

    def _blocks(self) -> Iterator[bytes]:
        # A buffered reader would wait for a whole buffer, and its lock would be held by
        # the thread when the interpreter ends.
        while block := os.read(self._descriptor, _BLOCK):
            yield block

    @property
    def is_terminal(self) -> bool:
        """Whether somebody types the lines."""
        return os.isatty(self._descriptor)

    @property
    def must_wait(self) -> bool:
        """Whether `chunks` has yielded every line that has arrived."""
        return self._arrived.empty()

    def all_within(self, seconds: float) -> list[str] | None:
        """Return all lines if the stream ends in time.

        Args:
            seconds: Time to wait for the end.

        Returns:
            The lines that `chunks` has not yielded, or None if the stream has not
            ended; `chunks` then yields them.

        Raises:
            UserError: If the stream ended with an error; see `stream_lines`.
        """
        if not self._ended.wait(seconds):
            return None
        if self._error is not None:
            raise self._error
        return list(iter(self._arrived.get, None))

    def chunks(self, size: int) -> Iterator[list[str]]:
        """Yield the lines that have arrived, and wait only if there are none.

        Args:
            size: Largest number of lines of a chunk.

        Yields:
            Lines in order, at least one.

        Raises:
            UserError: After the lines before an error; see `stream_lines`.
        """
        ended = False
        while not ended:
            chunk: list[str] = []
            while len(chunk) < size and not ended and not (chunk and self.must_wait):
                line = self._arrived.get()
                ended = line is None
                if line is not None:
                    chunk.append(line)
            if chunk:
                yield chunk
        if self._error is not None:
            raise self._error


class TypedLines:
    """Lines that somebody types at a prompt, with line editing and a history.

    Standard input and standard error must be terminals; the prompt goes to standard
    error.

    Args:
        name: Name of standard input for messages.
    """

    is_terminal = True
    must_wait = True

    def __init__(self, name: str) -> None:
        self._name = name

    def chunks(self, size: int) -> Iterator[list[str]]:
        """Yield one line at a time, whatever the size; see `LiveLines.chunks`."""
        del size
        with contextlib.suppress(ImportError):
            import readline  # gives `input` editing and a history

            # A paste of several lines is several sentences.
            readline.parse_and_bind("set enable-bracketed-paste off")
        for line in stream_lines(iter(_ask, None), self._name):
            yield [line]


def _ask() -> bytes | None:
    """Ask for a line on standard error; return None at the end of the input."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)  # `input` shows the prompt and what is typed there
    try:
        line = input(PROMPT)
        return f"{line}\n".encode(sys.stdin.encoding, sys.stdin.errors or "strict")
    except UnicodeDecodeError as error:
        return error.object + b"\n"  # `stream_lines` reports the line
    except EOFError:
        sys.stderr.write("\n")
        return None
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
