"""Paths that the package, and TensorFlow, can read and write."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from t2t_repro.errors import UserError

# `Path` makes one slash of two, so the second one is optional in well-known names.
_REMOTE = re.compile(
    r"[a-z][a-z0-9+.-]+://"
    r"|(gs|gcs|s3[an]?|hdfs|viewfs|https?|ftp|sftp|abfss?|az|wasbs?|adl|dbfs|file):/",
    re.IGNORECASE,
)
# TensorFlow reads the name of a checkpoint as a pattern, in which these are special.
# It takes other special characters, such as *, as they are.
_PATTERN = {"[", "\\"} - {os.sep}


def check_local_path(path: str | Path, name: str = "") -> None:
    """Refuse the path of remote storage.

    Args:
        path: Path that the user gave.
        name: Flag or argument of the path, for the message.

    Raises:
        UserError: If it is one.
    """
    if _REMOTE.match(str(path)):
        raise UserError(
            f"received {f'{name} {path}'.strip()}, expected a local path: mount the "
            "storage (gcsfuse for gs://, s3fs for s3://), or copy it, and give the "
            "local path."
        )


def check_tensorflow_path(path: str | Path) -> None:
    """Refuse a path that is not local, or that TensorFlow would spell in another way.

    Args:
        path: Path that the user gave.

    Raises:
        UserError: If it is refused.
    """
    check_local_path(path)
    absolute = os.path.abspath(path)
    try:
        # TensorFlow spells every path in UTF-8, whatever the locale.
        is_utf8 = absolute.encode("utf-8") == os.fsencode(absolute)
    except UnicodeEncodeError:
        is_utf8 = False
    if not is_utf8:
        shown = absolute.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        raise UserError(
            f"received {shown}, which is not UTF-8 in this locale: set "
            "LC_ALL=C.UTF-8, or rename it with ASCII letters."
        )


def path_inside(folder: str | Path, name: str) -> Path:
    """Return the path of a file that a description in its folder names.

    Args:
        folder: The folder.
        name: Name of the file. A description may be of a stranger, or damaged.

    Raises:
        UserError: If it is not a name, but leads to another folder.
    """
    is_name = type(name) is str and name == Path(name).name and "\0" not in name
    if not is_name or name in ("", ".."):
        raise UserError(
            f"a description in {folder} names the file {name!r}, expected a name "
            "without a folder: restore the description from a copy."
        )
    return Path(folder) / name


def has_pattern(path: str | Path) -> bool:
    """Return whether TensorFlow would read a path as a pattern."""
    return not _PATTERN.isdisjoint(str(path))


@contextmanager
def without_pattern(checkpoint: str) -> Iterator[str]:
    """Yield a path of a checkpoint that TensorFlow does not read as a pattern.

    If it needs temporary links, they exist inside the block only.

    Args:
        checkpoint: Path of the checkpoint, without `.index`.
    """
    if not has_pattern(checkpoint):
        yield checkpoint
        return
    path = Path(checkpoint)
    with TemporaryDirectory() as folder:
        for file in matching(path.parent, f"{glob.escape(path.name)}.*"):
            link = Path(folder) / ("link" + file.name.removeprefix(path.name))
            link.symlink_to(file.resolve())
        yield str(Path(folder) / "link")


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder whose names match, in no order.

    Differs from `Path.glob`, which finds nothing in a folder that cannot be listed.

    Args:
        folder: The folder; without one, there are no files.
        pattern: Pattern of a name, such as "*.index".

    Raises:
        UserError: If the folder cannot be listed.
    """
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise UserError(
            f"cannot list {folder}: {error.strerror}; give yourself the right to read "
            "it, as `chmod u+r` does, or give another folder."
        ) from error
    return [folder / name for name in names if fnmatchcase(name, pattern)]


def check_new_folder(export_dir: str | Path) -> None:
    """Refuse a folder that exists, or is not local.

    Raises:
        UserError: If it is refused.
    """
    check_tensorflow_path(export_dir)
    if Path(export_dir).exists():
        raise UserError(
            f"received export folder {export_dir}, which exists: remove it or give "
            "another."
        )
