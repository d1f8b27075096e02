"""Atomic writes, locks and paths of files and folders.

Some files are JSON descriptions of their folder: a run's `hparams.json`, a manifest.
"""

from __future__ import annotations

import errno
import glob
import json
import logging
import os
import re
import secrets
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, TypeVar

from t2t_repro.errors import UserError

logger = logging.getLogger(__name__)


try:
    import fcntl
except ImportError:  # Windows: folders are not locked there.
    fcntl = None

INCOMPLETE = ".incomplete"
_REPLACED = ".replaced"
# Next step if there is no space for a file, by the system's message
_NO_SPACE = {
    os.strerror(errno.ENOSPC): "free space",
    os.strerror(errno.EDQUOT): "free space",
    os.strerror(errno.EFBIG): "raise the limit on the size of a file (`ulimit -f`)",
}


def incomplete_name(name: str) -> str:
    """Return a temporary name for a file that is not complete yet.

    It is random, so that nobody can place a link there in advance, and no other process
    writes the same file.
    """
    return f"{name}.{secrets.token_hex(4)}{INCOMPLETE}"


def complete_name(name: str) -> str:
    """Return the final name of a file with an `incomplete_name`."""
    return re.sub(rf"(\.[0-9a-f]{{8}})?{re.escape(INCOMPLETE)}$", "", name)


@contextmanager
def atomic_file(path: Path) -> Generator[BinaryIO]:
    """Yield a new file that is renamed to `path` when the block ends.

    A process that is killed inside the block leaves it under its `incomplete_name`.

    Args:
        path: Path of the file. An existing file is replaced, unless the block raises
            an error.
    """
    incomplete = path.with_name(incomplete_name(path.name))
    try:
        with incomplete.open("xb") as file:
            yield file
        os.replace(incomplete, path)
    except BaseException:
        incomplete.unlink(missing_ok=True)
        raise


def atomic_write(path: Path, content: bytes | str) -> None:
    """Write a file under a temporary name, then rename it.

    Args:
        path: Path of the file. An existing file is replaced.
        content: Bytes, or text to be encoded as UTF-8.

    Raises:
        OSError: If the file cannot be written. An existing file is still there, and
            the error names `path`.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        with atomic_file(path) as file:
            file.write(data)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def open_no_link(path: Path, flags: int) -> int:
    """Open a file, but refuse a symbolic link in its place.

    Args:
        path: Path of the file.
        flags: Flags of `os.open`.

    Returns:
        The descriptor.

    Raises:
        UserError: If it is a symbolic link.
    """
    try:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise UserError(
            f"{path} is a symbolic link, expected a file: remove the link, whose "
            "target would be overwritten."
        ) from error


@contextmanager
def atomic_folder(folder: Path) -> Generator[Path]:
    """Yield an empty folder that replaces `folder` when the block ends.

    Args:
        folder: Path of the folder. An existing folder is replaced, unless the block
            raises an error.
    """
    recover_folder(folder)
    incomplete = folder.with_name(folder.name + INCOMPLETE)
    incomplete.mkdir(parents=True)
    try:
        yield incomplete
    except BaseException:
        _remove(incomplete)
        raise
    # A folder cannot be renamed onto another one, so the old one is renamed first.
    replaced = _replaced_name(folder)
    if folder.exists():
        folder.rename(replaced)
    incomplete.rename(folder)
    _remove(replaced)


def recover_folder(folder: Path) -> None:
    """Clean up after a process that was killed inside `atomic_folder`.

    If it was killed between its two renames, the old folder is renamed back. Call this
    only where no other process can be writing the folder.

    Args:
        folder: Path of the folder; it need not exist.
    """
    if current_folder(folder) != folder:
        _replaced_name(folder).rename(folder)
    for left in (_replaced_name(folder), folder.with_name(folder.name + INCOMPLETE)):
        _remove(left)


def current_folder(folder: Path) -> Path:
    """Return the path at which to read a folder that `atomic_folder` writes.

    This is the folder itself, unless a process was killed while it replaced it.
    """
    replaced = _replaced_name(folder)
    return replaced if replaced.exists() and not folder.exists() else folder


def _remove(folder: Path) -> None:
    """Remove a folder, or a link in its place."""
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _replaced_name(folder: Path) -> Path:
    return folder.with_name(folder.name + _REPLACED)


@contextmanager
def full_disk_as_user_error(
    folder: Path, advice: Callable[[], str] | str
) -> Generator[None]:
    """Turn the error of a full disk, or of a limit, into a `UserError`.

    Other errors pass through.

    TensorFlow raises another error (`ResourceExhaustedError`, also raised when memory
    runs out), so errors are recognized by the system's message.

    Args:
        folder: Folder that the block writes to, for the message.
        advice: Next step, or a function that returns it. Its first word follows
            "free space, ".

    Raises:
        UserError: If the disk is full, the user's quota is used up, or the file would
            be larger than the user's limit.
    """
    try:
        yield
    except Exception as error:
        reason = next((text for text in _NO_SPACE if text in str(error)), None)
        if reason is None or isinstance(error, UserError):
            raise
        path = getattr(error, "filename", None) or folder
        next_step = advice if isinstance(advice, str) else advice()
        raise UserError(
            f"cannot write {path}: {reason}; {_NO_SPACE[reason]}, {next_step}."
        ) from error


@contextmanager
def folder_lock(folder: Path, name: str, doing: str) -> Generator[None]:
    """Lock a folder against the same work of other processes while the block runs.

    The kernel releases the lock when the process ends, however it ends, so the file of
    a killed process blocks no other. Nothing is locked without `fcntl` (Windows), or on
    a file system without locks.

    Args:
        folder: Folder to lock; it is made if it does not exist.
        name: Name of the lock file inside the folder.
        doing: Work of this process, such as "training", for the message of another one.

    Raises:
        UserError: If another process holds the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = _lock(folder, name, doing)
    if descriptor is None:
        yield
        return
    try:
        yield
    finally:
        # Remove the file before releasing the lock: afterwards it may belong to
        # another process.
        (folder / name).unlink(missing_ok=True)
        os.close(descriptor)


def _lock(folder: Path, name: str, doing: str) -> int | None:
    """Return the descriptor of a locked file, or None if files have no locks."""
    if fcntl is None:
        return None
    path = folder / name
    while True:
        descriptor = open_no_link(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(descriptor, 20).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise UserError(
                f"another process (pid {pid or 'unknown'}) is {doing} in {folder}: "
                "wait for it to end, or give another folder."
            ) from None
        except OSError as error:
            os.close(descriptor)
            logger.warning("%s cannot be locked: %s", folder, error.strerror)
            return None
        if os.fstat(descriptor).st_nlink > 1:
            path.unlink()  # not a lock; the file keeps its other names
        elif _is_file(descriptor, path):
            # On a full disk, the message of another process lacks the pid.
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
            return descriptor
        # Its last owner removed it after we opened it and before we locked it.
        os.close(descriptor)


def _is_file(descriptor: int, path: Path) -> bool:
    """Return whether an open file is the file at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


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
        UserError: If the path is remote.
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
        name: Name of the file. A description may be a stranger's, or damaged.

    Raises:
        UserError: If the name leads to another folder.
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
def without_pattern(checkpoint: str) -> Generator[str]:
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
    """Return the files of a folder whose names match, in no particular order.

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


def check_new_folder(folder: str | Path) -> None:
    """Refuse a folder that exists, or is not local.

    Raises:
        UserError: If it is refused.
    """
    check_tensorflow_path(folder)
    if os.path.lexists(Path(folder)):  # also a link to nowhere
        raise UserError(
            f"received the new folder {folder}, which exists: remove it or give "
            "another."
        )


# The largest description is the manifest of prepared data, below a megabyte.
MAX_BYTES = 32 * 2**20
_MAX_DIGITS = 20  # digits of a 64-bit number

_Description = TypeVar("_Description")


def load_description(
    path: Path,
    build: Callable[[dict[str, Any]], _Description],
    *,
    expected_format: int,
    advice: str,
) -> _Description | None:
    """Read a description, or return None if there is no file.

    Args:
        path: Path of the file.
        build: Makes the description from the values of the file.
        expected_format: Value that the file must have under "format".
        advice: Next step if the file cannot be used, for messages.

    Returns:
        The return value of `build`.

    Raises:
        UserError: If the path is refused, or the file is damaged or has another
            format.
    """
    check_tensorflow_path(path.parent)
    if not path.exists():
        return None
    try:
        values = read_json(path)
        if isinstance(values, dict) and values and "format" not in values:
            raise UserError(f"another program wrote it, it has no format; {advice}")
        if values["format"] != expected_format:
            raise UserError(
                f"received format {values['format']}, expected {expected_format}: "
                f"another version of t2t_repro wrote it; {advice}"
            )
        return build(values)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} is damaged ({type(error).__name__}: {error}); {advice}"
        ) from error


def read_json(path: Path) -> Any:
    """Return the content of a JSON file from an untrusted source.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not JSON, or no program of this package wrote it: it is not
            a regular file, too large, or nested too deeply, or has a number of too many
            digits.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError("it is not a regular file")  # reading might never end
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    return parse_json(content)


def parse_json(content: bytes | str) -> Any:
    """Return the value of JSON text of bounded size; bytes are UTF-8.

    Raises:
        ValueError: See `read_json`.
    """
    text = content if isinstance(content, str) else content.decode("utf-8")
    try:
        return json.loads(text, parse_int=_bounded_int)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _bounded_int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number has {len(text):,} digits")
    return int(text)


def description_text(values: Mapping[str, Any]) -> str:
    """Return the content of a description's file."""
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def differences(recorded: Mapping[str, Any], requested: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each value that differs.

    Args:
        recorded: Values of the description in the folder.
        requested: Requested values. Names that are missing here are not compared.

    Returns:
        Phrases such as "num_shards is 10 there, 3 now", in the order of `requested`.
    """
    return [
        f"{name} is {recorded.get(name)!r} there, {value!r} now"
        for name, value in requested.items()
        if recorded.get(name) != value
    ]
