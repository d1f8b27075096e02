"""Read the user's text files strictly: every error names the file and the line.

Only a line feed ends a line: if U+0085, U+2028 or a form feed inside a sentence did,
two parallel files would get out of step. A carriage return before the line feed is part
of the line break, and a byte-order mark at the start of a file is not part of its text.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import itertools
import os
import shlex
import stat
import zlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from t2t_repro.errors import UserError

_GZIP_MAGIC = b"\x1f\x8b"

# The longest first: UTF-32's little-endian mark begins with UTF-16's.
_OTHER_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "UTF-32LE"),
    (codecs.BOM_UTF32_BE, "UTF-32BE"),
    (codecs.BOM_UTF16_LE, "UTF-16LE"),
    (codecs.BOM_UTF16_BE, "UTF-16BE"),
)
_HEAD_BYTES = 4096


def read_lines(
    path: Path, piped_from: str | None = None, *, allow_empty: bool = False
) -> Iterator[str]:
    """Yield the lines of a plain or gzipped UTF-8 file.

    Args:
        path: Path of the file.
        piped_from: Name of the stream of which the file is a copy, such as "standard
            input". Messages then show how to convert the stream instead of the file.
        allow_empty: Whether the file may have no lines.

    Raises:
        UserError: If the file is missing, empty, damaged or not UTF-8, has NUL bytes,
            or has carriage returns in place of line feeds.
    """
    origin = _Origin(path, piped_from)
    number = 0
    with _open(origin) as file:
        for number, raw in enumerate(file, start=1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
                _refuse_carriage_returns(origin, raw)
            yield _text_of(raw, origin, number)
    if number == 0 and not allow_empty:
        raise UserError(f"received text file {origin}, which is empty")


def stream_lines(blocks: Iterable[bytes], name: str) -> Iterator[str]:
    """Yield the lines of an open stream, each as soon as it is complete.

    Accepts the same text as `read_lines`. Gzipped text is read to its end before the
    first line is yielded.

    Args:
        blocks: Bytes in the order of their arrival, none of them empty.
        name: Name of the stream for messages, such as "standard input".

    Raises:
        UserError: If the text is damaged or not UTF-8, or has NUL bytes. An empty
            stream has no lines.
    """
    origin = _Origin(Path(os.devnull), name)
    blocks = iter(blocks)
    head = next(blocks, b"")
    if head == _GZIP_MAGIC[:1]:
        head += next(blocks, b"")
    if head.startswith(_GZIP_MAGIC):
        head, blocks = _unzip(b"".join([head, *blocks]), origin), iter(())
    _refuse_other_encodings(origin, head[:_HEAD_BYTES])
    for number, raw in enumerate(_split(itertools.chain([head], blocks)), start=1):
        raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        yield _text_of(raw, origin, number)


def _split(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without their line feeds; the last one may lack it."""
    parts: list[bytes] = []
    for block in blocks:
        first, *others = block.split(b"\n")
        parts.append(first)
        for start in others:
            yield b"".join(parts)
            parts = [start]
    last = b"".join(parts)
    if last:
        yield last


def _unzip(content: bytes, origin: _Origin) -> bytes:
    with _report_damage(origin):
        return gzip.decompress(content)


def identity(path: Path) -> dict[str, object]:
    """Return facts about a file that depend only on its content.

    Args:
        path: Path of the file.

    Returns:
        "bytes", the size of the file, and "sha256", in hexadecimal.

    Raises:
        UserError: If the file cannot be read.
    """
    origin = _Origin(path)
    try:
        with path.open("rb") as file:
            _refuse_pipe(origin)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return {"bytes": file.tell(), "sha256": digest}
    except OSError as error:
        raise _unreadable_error(origin, error) from error


@dataclass(frozen=True)
class _Origin:
    """Origin of text, for messages.

    Attributes:
        path: Path of the file that is read.
        piped_from: Name of the stream that was copied to the file, or None.
    """

    path: Path
    piped_from: str | None = None

    def __str__(self) -> str:
        return self.piped_from or str(self.path)

    def from_encoding(self, encoding: str) -> str:
        """Return a shell command that converts the text to UTF-8."""
        return self.conversion(f"iconv -f {encoding} -t UTF-8")

    def conversion(self, command: str) -> str:
        """Return a shell command that pipes the text through the given command."""
        zipped = _is_gzip(self.path)
        if self.piped_from:
            unzip = "gunzip | " if zipped else ""
            return f"... | {unzip}{command} | t2t ..."
        path = shlex.quote(str(self.path))
        converted = shlex.quote(f"{self.path.name.removesuffix('.gz')}.utf8")
        if zipped:
            return f"gunzip -c {path} | {command} > {converted}"
        return f"{command} < {path} > {converted}"


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC


@contextlib.contextmanager
def _open(origin: _Origin) -> Generator[IO[bytes]]:
    """Open plain or gzipped text, and turn errors of reading it into `UserError`."""
    with _report_damage(origin), origin.path.open("rb") as plain:
        _refuse_pipe(origin)
        zipped = plain.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        plain.seek(0)
        unzipped = gzip.GzipFile(fileobj=plain) if zipped else plain
        file = cast("IO[bytes]", unzipped)
        _refuse_other_encodings(origin, file.read(_HEAD_BYTES))
        file.seek(0)
        yield file


@contextlib.contextmanager
def _report_damage(origin: _Origin) -> Generator[None]:
    """Turn errors of reading a file into `UserError`."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(
            f"received {origin}, a damaged gzip file ({error}): download or write it "
            "again"
        ) from error
    except OSError as error:
        raise _unreadable_error(origin, error) from error


def _refuse_pipe(origin: _Origin) -> None:
    if not stat.S_ISREG(origin.path.stat().st_mode):
        raise UserError(
            f"received {origin}, expected a regular file: it is read several times, so "
            "write it to a file first"
        )


def _unreadable_error(origin: _Origin, error: OSError) -> UserError:
    reason = error.strerror or type(error).__name__
    return UserError(
        f"received text file {origin}, expected a file that can be read: {reason}"
    )


def _refuse_other_encodings(origin: _Origin, head: bytes) -> None:
    found = _encoding_of_mark(head) or _encoding_of_nulls(head)
    if found:
        raise UserError(
            f"received {origin}, which looks like {found}, expected UTF-8: convert it "
            f"with `{origin.from_encoding(found)}`"
        )


def _refuse_carriage_returns(origin: _Origin, first: bytes) -> None:
    """Refuse the line ends of old Macs, where the whole file is one line."""
    if first.count(b"\r") > 1 and not first.endswith(b"\n"):
        command = origin.conversion(r"tr '\r' '\n'")
        raise UserError(
            f"received {origin}, whose lines end in carriage returns, expected line "
            f"feeds: convert it with `{command}`"
        )


def _encoding_of_mark(head: bytes) -> str | None:
    return next(
        (name for mark, name in _OTHER_ENCODINGS if head.startswith(mark)), None
    )


def _encoding_of_nulls(head: bytes) -> str | None:
    """Recognize UTF-16 or UTF-32 without a mark by the positions of NUL bytes."""
    quarter = len(head) // 4
    if not quarter:
        return None
    # A Latin letter is one byte with one NUL in UTF-16, and with three in UTF-32.
    null = [head[place::4].count(0) > quarter // 2 for place in range(4)]
    patterns = {
        (False, True, True, True): "UTF-32LE",
        (True, True, True, False): "UTF-32BE",
        (False, True, False, True): "UTF-16LE",
        (True, False, True, False): "UTF-16BE",
    }
    return patterns.get((null[0], null[1], null[2], null[3]))


def _text_of(raw: bytes, origin: _Origin, number: int) -> str:
    line = raw.removesuffix(b"\n").removesuffix(b"\r")
    if b"\0" in line:
        raise UserError(
            f"{origin}:{number}: received {line.count(0):,} NUL byte(s), expected "
            "text: the file is damaged (an interrupted write?) or is not text"
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{origin}:{number}: received byte 0x{line[error.start]:02X} at byte "
            f"{error.start + 1} of the line, which is not UTF-8: convert the text, "
            f"for example with `{origin.from_encoding('WINDOWS-1252')}`"
        ) from error
