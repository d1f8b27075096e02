"""Lines of a terminal or a pipe, as they arrive."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Iterator

from t2t_repro.data.text_files import stream_lines
from t2t_repro.errors import UserError

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
            import readline  # from here on, `input` has editing and a history

            # A paste of several lines is several sentences.
            readline.parse_and_bind("set enable-bracketed-paste off")
        for line in stream_lines(iter(_answer, None), self._name):
            yield [line]


def _answer() -> bytes | None:
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
