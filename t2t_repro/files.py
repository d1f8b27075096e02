"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INCOMPLETE = ".incomplete"
_REPLACED = ".replaced"


def atomic_write(path: Path, content: bytes | str) -> None:
    """Write a file beside its place, then give it its name.

    Args:
        path: Where it goes; what is there is replaced.
        content: Bytes, or text to be encoded as UTF-8.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    incomplete = path.with_name(path.name + INCOMPLETE)
    incomplete.write_bytes(data)
    os.replace(incomplete, path)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` when the block ends.

    Args:
        folder: What is there is replaced, unless the block raises.
    """
    beside = folder.with_name(folder.name + INCOMPLETE)
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    yield beside
    # A folder cannot be renamed onto another one: the old one steps aside first.
    replaced = folder.with_name(folder.name + _REPLACED)
    shutil.rmtree(replaced, ignore_errors=True)
    if folder.exists():
        folder.rename(replaced)
    beside.rename(folder)
    shutil.rmtree(replaced, ignore_errors=True)
