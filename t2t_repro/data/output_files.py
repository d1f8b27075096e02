"""Rename files together when all are complete, in a locked folder."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Generator
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
from t2t_repro.text import tokenizer_suffixes

logger = logging.getLogger(__name__)

# What follows the prefix in the names of shards, raw text and tokenizers.
_OUTPUT = re.compile(
    r"-(train|dev|test)(-\d+-of-\d+|\.(inputs|targets)\.txt)"
    rf"|(\.inputs|\.targets)?({'|'.join(map(re.escape, tokenizer_suffixes()))})"
)


class OutputFiles:
    """Files that are renamed together when all are complete, or not at all.

    The file that was requested last, the manifest, is renamed last. A file that another
    program made is never replaced.

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
        """Return the temporary path to write a file to."""
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
        named = self._renamed_files()
        foreign = [path.name for path in self._existing_files() if path not in named]
        if not foreign:
            return
        others = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
        raise UserError(
            f"{self._folder} has files of {self.prefix} ({foreign[0]}{others}) but no "
            f"{self._manifest}: another program made them.\nGive another data_dir, or "
            "move these files away. Data of tensor2tensor can be read if its "
            "vocabulary (vocab.*.subwords) is beside it."
        )

    def __enter__(self) -> Self:
        left = [*self._renamed_files(), *(path for _, path in self._leftovers())]
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
            for _name, path in self._leftovers():
                path.unlink()
            return
        for name, path in self._incomplete.items():
            os.replace(path, self._folder / name)

    def _leftovers(self) -> list[tuple[str, Path]]:
        """Return the names and paths of the incomplete files of a killed process."""
        named = [
            (complete_name(path.name), path)
            for path in matching(self._folder, f"{self.prefix}[-.]*{INCOMPLETE}")
        ]
        return [
            (name, path)
            for name, path in named
            if name == self._manifest or self._is_output(name)
        ]

    def _existing_files(self) -> list[Path]:
        """Return the files that have names of outputs, in the order of their names."""
        return sorted(
            path
            for path in matching(self._folder, f"{self.prefix}[-.]*")
            if self._is_output(path.name)
        )

    def _is_output(self, name: str) -> bool:
        return _OUTPUT.fullmatch(name.removeprefix(self.prefix)) is not None

    def _renamed_files(self) -> list[Path]:
        """Return the files that a killed process had already renamed.

        Its manifest, which lists them, still has its temporary name.
        """
        manifest = dict(self._leftovers()).get(self._manifest)
        try:
            files = dict(read_json(manifest)["files"]) if manifest else {}
        except (ValueError, KeyError, TypeError):
            files = {}  # killed while it wrote the manifest, or not ours
        return [
            path
            for path in self._existing_files()
            if path.name in files and identity(path) == files[path.name]
        ]


@contextlib.contextmanager
def locked_folder(folder: Path, prefix: str) -> Generator[None]:
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
def write_errors(folder: Path) -> Generator[None]:
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
