"""Remember the packages that the user named, whose code a run may run again.

The description of a run names the package that it needs, and importing a package runs
its code. A run may come from anybody, so its description is not enough: you must have
given the folder with `--t2t_usr_dir` before.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Any

from t2t_repro.description_file import description_text, load_description
from t2t_repro.errors import UserError
from t2t_repro.files import atomic_write

logger = logging.getLogger(__name__)

FORMAT = 1
_KEPT = 1000  # packages; the oldest ones are forgotten
_OTHERS_WRITE = stat.S_IWOTH


def remember(folder: str | Path) -> None:
    """Remember a package in the user's configuration folder, if it can be written to.

    Args:
        folder: Folder of the package.
    """
    package = str(Path(folder).expanduser().resolve())
    try:
        file = _file()
        known = _remembered(file)
        if package in known:
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = [*known, package][-_KEPT:]
        atomic_write(file, description_text({"format": FORMAT, "packages": kept}))
        file.chmod(0o600)
    except (OSError, ValueError, RuntimeError) as error:
        # A home that is missing or read-only, or a path that is no Unicode: the flag
        # is needed again.
        logger.debug("cannot remember %s: %s", package, error)


def is_remembered(folder: str | Path) -> bool:
    """Return whether the user named a package before, and only the user can change it.

    Args:
        folder: Folder of the package.
    """
    try:
        package = Path(folder).expanduser().resolve()
        return str(package) in _remembered(_file()) and not _others_write(package)
    except (OSError, RuntimeError):
        return False


def _file() -> Path:
    """Return the path of the list of packages.

    Raises:
        RuntimeError: If the user has no home.
    """
    given = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    base = given if given.is_absolute() else Path.home() / ".config"
    return base / "t2t_repro" / "packages.json"


def _remembered(file: Path) -> list[str]:
    """Return the absolute paths of all packages, the oldest first.

    Nothing is read that somebody else may have written.
    """
    if not all(map(_is_own, (file.parent, file))):
        return []
    try:
        advice = "remove it."
        found = load_description(file, _paths, expected_format=FORMAT, advice=advice)
    except (OSError, UserError) as error:
        logger.debug("%s", error)
        found = None
    return found or []


def _paths(values: dict[str, Any]) -> list[str]:
    """Return the paths of a list.

    Raises:
        TypeError: If it holds anything else.
    """
    packages = values["packages"]
    if not isinstance(packages, list) or any(type(one) is not str for one in packages):
        raise TypeError("packages must be a list of paths")
    return packages


def _is_own(path: Path) -> bool:
    """Return whether a file or folder, no link, belongs to the user alone, or root."""
    try:
        found = path.lstat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):  # Windows: others cannot write to a home
        return True
    is_plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    is_mine = found.st_uid in (os.getuid(), 0)
    return is_plain and is_mine and not found.st_mode & _OTHERS_WRITE


def _others_write(folder: Path) -> bool:
    """Return whether everybody can put files into a folder."""
    return hasattr(os, "getuid") and bool(folder.stat().st_mode & _OTHERS_WRITE)
