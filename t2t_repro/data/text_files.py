"""Pairs of text from the user's files, read strictly: what is wrong has a line number.

A line ends at a line feed and nowhere else: U+0085, U+2028 or a form feed inside a
sentence would put two files out of step. One carriage return before it belongs to the
line's end, and a byte-order mark at the start of a file is no part of its text.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar, cast

from t2t_repro.errors import UserError

_GZIP_MAGIC = b"\x1f\x8b"
_ENDED = object()

# The longest first: UTF-16's mark for little-endian begins UTF-32's.
_OTHER_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "UTF-32LE"),
    (codecs.BOM_UTF32_BE, "UTF-32BE"),
    (codecs.BOM_UTF16_LE, "UTF-16LE"),
    (codecs.BOM_UTF16_BE, "UTF-16BE"),
)
_HEAD_BYTES = 4096


@dataclass(frozen=True)
class PairFiles:
    """Where the pairs of a split stand.

    Attributes:
        source: file of the source lines, or of both sides with one TAB between them.
        target: file of the target lines, or None where `source` holds both sides.
    """

    kind: ClassVar[str] = "pairs"

    source: Path
    target: Path | None = None

    @property
    def paths(self) -> dict[str, Path]:
        """The files by their role: "source" and "target", or "tsv"."""
        if self.target is None:
            return {"tsv": self.source}
        return {"source": self.source, "target": self.target}


@dataclass(frozen=True)
class TreeFile:
    """Where the bracketed trees of a split stand."""

    kind: ClassVar[str] = "trees"

    trees: Path

    @property
    def paths(self) -> dict[str, Path]:
        """The file by its role."""
        return {"trees": self.trees}


def read_pairs(files: PairFiles) -> Iterator[tuple[str, str]]:
    """Gives the pairs of plain or gzipped text files, in order.

    Raises:
        UserError: if a file is missing, empty, damaged or not UTF-8, holds NUL bytes,
            or the sides do not match line by line.
    """
    if files.target is None:
        return _pairs_of_columns(files.source)
    return _pairs_of_lines(files.source, files.target)


def read_lines(path: Path) -> Iterator[str]:
    """Gives the lines of a plain or gzipped UTF-8 file.

    Raises:
        UserError: if the file is missing, empty, damaged or not UTF-8, or holds NUL
            bytes.
    """
    number = 0
    with _open(path) as file:
        for number, raw in enumerate(file, start=1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            yield _text_of(raw, path, number)
    if number == 0:
        raise UserError(f"received text file {path}, which is empty")


def has_byte_order_mark(path: Path) -> bool:
    """Whether a UTF-8 file begins with a byte-order mark, which readers leave out."""
    with _open(path) as file:
        return file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8


def identity(path: Path) -> dict[str, object]:
    """Gives facts on a file that change with its content and not with its place.

    Raises:
        UserError: if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            _refuse_pipe(path)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return {"bytes": file.tell(), "sha256": digest}
    except OSError as error:
        raise _unreadable(path, error) from error


def identities(
    files: Mapping[str, PairFiles | TreeFile],
) -> dict[str, dict[str, object]]:
    """Gives the identity of each file, under its split and role: `train_source`.

    Raises:
        UserError: if a file cannot be read.
    """
    return {
        f"{split}_{role}": identity(path)
        for split, own in files.items()
        for role, path in own.paths.items()
    }


def _pairs_of_lines(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    sources, targets = read_lines(source), read_lines(target)
    count = 0
    while True:
        left, right = next(sources, _ENDED), next(targets, _ENDED)
        if isinstance(left, str) and isinstance(right, str):
            count += 1
            yield left, right
            continue
        if left is right:
            return
        left_count = count + (left is not _ENDED) + sum(1 for _ in sources)
        right_count = count + (right is not _ENDED) + sum(1 for _ in targets)
        raise UserError(
            f"received {left_count:,} lines in {source} and {right_count:,} lines in "
            f"{target}, expected as many: line N of one translates line N of the other"
        )


def _pairs_of_columns(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise UserError(
                f"{path}:{number}: received {len(columns)} column(s), expected 2: "
                f"source and target with one TAB between them"
            )
        yield columns[0], columns[1]


@contextlib.contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """Opens plain or gzipped text; whatever reading it raises is a `UserError`."""
    try:
        with path.open("rb") as plain:
            _refuse_pipe(path)
            zipped = plain.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            plain.seek(0)
            unzipped = gzip.GzipFile(fileobj=plain) if zipped else plain
            file = cast("IO[bytes]", unzipped)
            _refuse_other_encodings(path, file.read(_HEAD_BYTES))
            file.seek(0)
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(
            f"received {path}, a damaged gzip file ({error}): fetch or write it again"
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _refuse_pipe(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        raise UserError(
            f"received {path}, expected a regular file: it is read several times, so "
            f"write it to a file first"
        )


def _unreadable(path: Path, error: OSError) -> UserError:
    reason = error.strerror or type(error).__name__
    return UserError(
        f"received text file {path}, expected a file that can be read: {reason}"
    )


def _refuse_other_encodings(path: Path, head: bytes) -> None:
    found = _encoding_of_mark(head) or _encoding_of_nulls(head)
    if found:
        raise UserError(
            f"received {path}, which looks like {found}, expected UTF-8: convert it "
            f"with `{_conversion(found, path)}`"
        )


def _conversion(encoding: str, path: Path) -> str:
    return f"iconv -f {encoding} -t UTF-8 {path} > {path.name}.utf8"


def _encoding_of_mark(head: bytes) -> str | None:
    return next(
        (name for mark, name in _OTHER_ENCODINGS if head.startswith(mark)), None
    )


def _encoding_of_nulls(head: bytes) -> str | None:
    """Guesses UTF-16 or UTF-32 without a mark from where the NUL bytes stand."""
    quarter = len(head) // 4
    if not quarter:
        return None
    # A Latin letter is one byte beside one NUL in UTF-16, beside three in UTF-32.
    null = [head[place::4].count(0) > quarter // 2 for place in range(4)]
    patterns = {
        (False, True, True, True): "UTF-32LE",
        (True, True, True, False): "UTF-32BE",
        (False, True, False, True): "UTF-16LE",
        (True, False, True, False): "UTF-16BE",
    }
    return patterns.get((null[0], null[1], null[2], null[3]))


def _text_of(raw: bytes, path: Path, number: int) -> str:
    line = raw.removesuffix(b"\n").removesuffix(b"\r")
    if b"\0" in line:
        raise UserError(
            f"{path}:{number}: received {line.count(0):,} NUL byte(s), expected text: "
            f"the file is damaged (an interrupted write?) or is not text"
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}:{number}: received byte 0x{line[error.start]:02X} at byte "
            f"{error.start + 1} of the line, which is not UTF-8: convert the file, "
            f"for example with `{_conversion('WINDOWS-1252', path)}`"
        ) from error
