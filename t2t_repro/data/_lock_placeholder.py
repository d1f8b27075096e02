"""Lock a folder against other processes; to be replaced by `t2t_repro.files`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from t2t_repro.errors import UserError


@contextmanager
def folder_lock(folder: Path, name: str, doing: str) -> Iterator[None]:
    """Keep other processes from doing the same in a folder while the block runs.

    Args:
        folder: Folder to lock; it is made if it does not exist.
        name: Name of the lock file inside the folder.
        doing: What this process does, for the message of another one.

    Raises:
        UserError: If another process holds the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(descriptor, 20).decode("ascii", "replace").strip()
            raise UserError(
                f"another process (pid {pid or 'unknown'}) is {doing} in {folder}: "
                "wait for it to end, or give another folder."
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
        try:
            yield
        finally:
            # Removed before it is released: afterwards it may be somebody else's.
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
