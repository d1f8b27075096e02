"""Finished parts of a preparation, so that a killed one can be resumed.

The parts are in a folder `<prefix>.unfinished` inside the data folder. The folder is
removed when the preparation is complete or fails with an error. It remains if the
process or one of its workers is killed, or the user interrupts it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from t2t_repro.data.text_files import identity
from t2t_repro.data.worker_pool import WorkerEnded
from t2t_repro.description_file import parse_json
from t2t_repro.files import atomic_write, open_no_link
from t2t_repro.local_paths import path_inside

JOURNAL = "journal.jsonl"
_CHECKSUM_BYTES = hashlib.sha256().digest_size


class WorkFolder:
    """A folder of finished parts, with a journal that describes them.

    An entry of the journal is a JSON object on a line. It is written after the files
    that it describes.

    Args:
        data_dir: Folder of the data.
        prefix: Prefix of the names of its files.
    """

    def __init__(self, data_dir: Path, prefix: str) -> None:
        self.folder = data_dir / f"{prefix}.unfinished"

    def path(self, name: str) -> Path:
        """Return the path of a file of the folder."""
        return path_inside(self.folder, name)

    def __enter__(self) -> Self:
        if self.folder.is_symlink():
            self.folder.unlink()
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None or (
            issubclass(kind, Exception) and not issubclass(kind, WorkerEnded)
        ):
            self.remove()

    def remove(self) -> None:
        """Remove the folder, if there is one, and ignore errors."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def entries(self, key: str) -> list[dict[str, Any]]:
        """Return the entries of an earlier process that did the same work.

        Args:
            key: Digest of everything that the parts depend on. If it differs from the
                key of the journal, all entries are removed.
        """
        lines = self._lines()
        if not lines or lines[0] != {"key": key}:
            self.replace_entries(key, [])
            return []
        self.replace_entries(key, lines[1:])  # without a line that was cut short
        return lines[1:]

    def replace_entries(self, key: str, entries: list[dict[str, Any]]) -> None:
        """Write the journal anew."""
        lines = [{"key": key}, *entries]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        atomic_write(self.path(JOURNAL), text)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add an entry."""
        descriptor = open_no_link(self.path(JOURNAL), os.O_WRONLY | os.O_APPEND)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(f"{json.dumps(entry)}\n")
            file.flush()
            os.fsync(file.fileno())

    def save(self, name: str, content: bytes) -> None:
        """Write a file for `load`."""
        checksum = hashlib.sha256(content).digest()
        atomic_write(self.path(name), checksum + content)

    def load(self, name: str) -> bytes | None:
        """Return the content that `save` wrote, or None if it is missing or damaged."""
        if not self.path(name).is_file():
            return None
        file = self.path(name).read_bytes()
        checksum, content = file[:_CHECKSUM_BYTES], file[_CHECKSUM_BYTES:]
        return content if hashlib.sha256(content).digest() == checksum else None

    def has(self, name: str, facts: Mapping[str, Any]) -> bool:
        """Return whether a file is there with the content that an entry describes."""
        return self.path(name).is_file() and identity(self.path(name)) == facts

    def _lines(self) -> list[dict[str, Any]]:
        try:
            text = self.path(JOURNAL).read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        lines = []
        for line in text.splitlines():
            try:
                lines.append(parse_json(line))
            except ValueError:
                break  # the process was killed while it wrote the line
        return lines
