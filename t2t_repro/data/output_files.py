"""Files that get their names together, and the lock on the folder they are in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from t2t_repro.data.text_files import identity
from t2t_repro.errors import UserError
from t2t_repro.files import INCOMPLETE, folder_lock


class OutputFiles:
    """Files that get their names together when all are complete, or not at all.

    The file that was requested last gets its name last.

    Args:
        folder: Folder of the files.
        prefix: Prefix of their names.

    Attributes:
        prefix: Prefix of their names.
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._names: list[str] = []
        self.prefix = prefix

    def path(self, name: str) -> Path:
        """Return the path under which to write a file until all are complete."""
        self._names.append(name)
        return self._incomplete(name)

    def identities(self) -> dict[str, dict[str, Any]]:
        """Return the size and sha256 of every file so far, by its name."""
        return {name: identity(self._incomplete(name)) for name in self._names}

    def __enter__(self) -> Self:
        self._remove_incomplete()
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is not None:
            self._remove_incomplete()
            return
        for name in self._names:
            os.replace(self._incomplete(name), self._folder / name)

    def _incomplete(self, name: str) -> Path:
        return self._folder / f"{name}{INCOMPLETE}"

    def _remove_incomplete(self) -> None:
        for separator in "-.":
            pattern = f"{self.prefix}{separator}*{INCOMPLETE}"
            for path in self._folder.glob(pattern):
                path.unlink()


@contextlib.contextmanager
def locked_folder(folder: Path, prefix: str) -> Iterator[None]:
    """Create and lock a folder; remove it if the block fails and it is empty.

    Args:
        folder: Folder that the block writes to.
        prefix: Prefix of the files that the block writes. Another process can write
            files with another prefix at the same time.

    Raises:
        UserError: If another process is writing files with this prefix, or the folder
            cannot be written to.
    """
    made = not folder.exists()
    try:
        with contextlib.ExitStack() as stack:
            with write_errors(folder):
                lock = folder_lock(folder, f"{prefix}.lock", "preparing data")
                stack.enter_context(lock)
            yield
    except BaseException:
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


@contextlib.contextmanager
def write_errors(folder: Path) -> Iterator[None]:
    """Turn an error of the system into one line for the user.

    Raises:
        UserError: If the block raises an `OSError`, as on a full disk.
    """
    try:
        yield
    except OSError as error:
        raise UserError(
            f"writing to {folder} failed: {error.strerror or error}"
        ) from error
