"""Files that get their names together, and the lock on the folder they are in."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from t2t_repro.data.manifest import manifest_name
from t2t_repro.data.text_files import identity
from t2t_repro.errors import UserError
from t2t_repro.files import (
    INCOMPLETE,
    complete_name,
    folder_lock,
    incomplete_name,
    matching,
    read_json,
)

logger = logging.getLogger(__name__)

# What follows the prefix in the names of shards, raw text and tokenizers.
_OUTPUT = re.compile(
    r"-(train|dev|test)(-\d+-of-\d+|\.(inputs|targets)\.txt)"
    r"|(\.inputs|\.targets)?\.(model|symbols)"
)


class OutputFiles:
    """Files that get their names together when all are complete, or not at all.

    The file that was requested last gets its name last: the manifest. A file that
    another program made is never replaced.

    Args:
        folder: Folder of the files.
        prefix: Prefix of their names.

    Attributes:
        prefix: Prefix of their names.
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._incomplete: dict[str, Path] = {}
        self._manifest = manifest_name(prefix)
        self.prefix = prefix

    def path(self, name: str) -> Path:
        """Return the path under which to write a file until all are complete."""
        self._incomplete[name] = self._folder / incomplete_name(name)
        return self._incomplete[name]

    def identities(self) -> dict[str, dict[str, Any]]:
        """Return the size and sha256 of every file so far, by its name."""
        return {name: identity(path) for name, path in self._incomplete.items()}

    def refuse_foreign(self) -> None:
        """Refuse a folder with files under these names that another program made.

        Raises:
            UserError: If there are such files; the message names the first one.
        """
        named = self._named()
        foreign = [path.name for path in self._existing() if path not in named]
        if not foreign:
            return
        others = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
        raise UserError(
            f"{self._folder} has files of {self.prefix} ({foreign[0]}{others}) but no "
            f"{self._manifest}: tensor2tensor or another program made "
            "them, and they cannot be read here.\n"
            "Give another data_dir, or move these files away."
        )

    def __enter__(self) -> Self:
        left = [*self._named(), *(path for _, path in self._left())]
        for path in left:
            path.unlink()
        if left:
            logger.info(
                "%s: an earlier preparation was interrupted and is done again; its %d "
                "file(s) are removed",
                self._folder,
                len(left),
            )
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is not None:
            for _name, path in self._left():
                path.unlink()
            return
        for name, path in self._incomplete.items():
            os.replace(path, self._folder / name)

    def _left(self) -> list[tuple[str, Path]]:
        """Return the names and paths of what a killed process left incomplete."""
        named = [
            (complete_name(path.name), path)
            for path in matching(self._folder, f"{self.prefix}[-.]*{INCOMPLETE}")
        ]
        return [
            (name, path)
            for name, path in named
            if name == self._manifest or self._is_output(name)
        ]

    def _existing(self) -> list[Path]:
        """Return the files that have names of outputs, in the order of their names."""
        return sorted(
            path
            for path in matching(self._folder, f"{self.prefix}[-.]*")
            if self._is_output(path.name)
        )

    def _is_output(self, name: str) -> bool:
        return _OUTPUT.fullmatch(name.removeprefix(self.prefix)) is not None

    def _named(self) -> list[Path]:
        """Return the files to which a killed process had given their names.

        Its manifest, which lists them, is still without its name.
        """
        manifest = dict(self._left()).get(self._manifest)
        try:
            files = dict(read_json(manifest)["files"]) if manifest else {}
        except (ValueError, KeyError, TypeError):
            files = {}  # killed while it wrote the manifest, or not ours
        return [
            path
            for path in self._existing()
            if path.name in files and identity(path) == files[path.name]
        ]


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
