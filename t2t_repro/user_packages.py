"""The packages of `--t2t_usr_dir`: import them, remember them, and report their errors.

The description of a run names the package that it needs, and importing a package runs
its code. A run may come from anybody, so its description is not enough: the user must
have given the folder with `--t2t_usr_dir` before.
"""

from __future__ import annotations

import errno
import importlib.util
import inspect
import logging
import os
import stat
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from t2t_repro import features
from t2t_repro.errors import UsageError, UserError
from t2t_repro.files import atomic_write, description_text, load_description

logger = logging.getLogger(__name__)

FORMAT = 1
_KEPT = 1000  # number of packages; older ones are forgotten
_OTHERS_WRITE = stat.S_IWOTH

# Folders of the imported packages, each with a separator at its end.
_users_folders: set[str] = set()


def is_imported(usr_dir: str | Path) -> bool:
    """Return whether this process has imported the package in a folder."""
    folder = Path(usr_dir).expanduser().resolve()
    loaded = sys.modules.get(folder.name)
    return getattr(loaded, "__file__", None) == str(folder / "__init__.py")


def import_package(folder: Path) -> ModuleType:
    """Import the package in a folder, under the name of the folder.

    Raises:
        UsageError: If it is not a package, or its name is taken.
        UserError: If the package raises an error; the message names the file and line.
    """
    init_file = folder / "__init__.py"
    if not init_file.is_file() or not folder.name.isidentifier():
        raise UsageError(
            f"t2t_usr_dir: received {folder}, expected a folder named like a Python "
            "package, with an __init__.py that imports your registrations."
        )
    if is_imported(folder):
        return sys.modules[folder.name]
    if folder.name in sys.modules:
        raise UsageError(
            f"t2t_usr_dir: a module called {folder.name} is already loaded; "
            f"rename the folder {folder}."
        )
    spec = importlib.util.spec_from_file_location(folder.name, init_file)
    if spec is None or spec.loader is None:
        raise UsageError(f"t2t_usr_dir: cannot import {init_file}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[folder.name] = module
    _users_folders.add(str(folder) + os.sep)
    for helper in features.modules("packages").values():
        helper.before_import()
    try:
        if b"\0" in init_file.read_bytes():  # Python's error names no file
            raise UsageError(f"t2t_usr_dir: received {init_file}, which is no text.")
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[folder.name]
        located = located_error(error)
        if located is not None:
            raise located from error
        raise
    return module


def located_error(error: BaseException) -> UserError | None:
    """Return an error of the user's package as a message with its file and line.

    Args:
        error: Any error.

    Returns:
        The message; None if no code of the package was running, or if the error is not
        an `Exception`, such as an interrupt.
    """
    place = _origin(error)
    if not place or not isinstance(error, Exception):
        return None
    text = str(error)
    if not isinstance(error, UserError):
        detail = error.msg if isinstance(error, SyntaxError) else text
        helpers = features.modules("packages").values()
        advice = filter(None, (helper.advice(error) for helper in helpers))
        text = ": ".join((type(error).__name__, detail, *advice))
    return UserError(text if place in text else f"{place}: {text}")


def _origin(error: BaseException) -> str:
    """Return the `file:line` in the user's package where an error began.

    It is empty if no code of the package was running.
    """
    folders = tuple(_users_folders)
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(folders):
        return f"{error.filename}:{error.lineno}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(folders):
            return f"{frame.filename}:{frame.lineno}"
    return ""


def running_line() -> str:
    """Return the `file:line` of the user's package that is running, or ""."""
    folders = tuple(_users_folders)
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith(folders):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def remember(folder: str | Path) -> None:
    """Remember a package in the user's configuration folder, if it can be written to.

    Args:
        folder: Folder of the package.
    """
    package = str(Path(folder).expanduser().resolve())
    try:
        file = _file()
        known = _read_remembered(file)
        if package in known:
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = [*known, package][-_KEPT:]
        atomic_write(file, description_text({"format": FORMAT, "packages": kept}))
        file.chmod(0o600)
    except (OSError, ValueError, RuntimeError) as error:
        # A home that is missing or read-only, or a path that is not Unicode: the flag
        # is needed again.
        logger.debug("cannot remember %s: %s", package, error)


def is_remembered(folder: str | Path) -> bool:
    """Return whether the user named a package before, and only the user can change it.

    Args:
        folder: Folder of the package.
    """
    try:
        package = Path(folder).expanduser().resolve()
        return str(package) in _read_remembered(_file()) and not _is_public(package)
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


def _read_remembered(file: Path) -> list[str]:
    """Return the absolute paths of all packages, the oldest first.

    A list that others can write is not read.
    """
    if not all(map(_is_private, (file.parent, file))):
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


def _is_private(path: Path) -> bool:
    """Return whether a file or folder, not a link, is the user's or root's alone."""
    try:
        found = path.lstat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):  # Windows: others cannot write to a home
        return True
    is_plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    is_mine = found.st_uid in (os.getuid(), 0)
    return is_plain and is_mine and not found.st_mode & _OTHERS_WRITE


def _is_public(folder: Path) -> bool:
    """Return whether everybody can put files into a folder."""
    return hasattr(os, "getuid") and bool(folder.stat().st_mode & _OTHERS_WRITE)


# The messages of errors of several classes: a file that cannot be mapped, a library
# that cannot be loaded, a thread without a stack.
_REFUSED = (
    os.strerror(errno.ENOMEM),
    "failed to map segment from shared object",
    "can't start new thread",
)


def as_user_error(error: Exception) -> UserError | None:
    """Convert an error into one that the user can correct, or return None.

    Args:
        error: A `UserError`, an error of a file, one that the user's package caused,
            or that of a machine or device without enough memory.
    """
    if isinstance(error, UserError):
        return error
    if (refused := _out_of_memory(error)) is not None:
        return refused
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return UserError(f"{error.filename}: {reason}" if error.filename else reason)
    # Of code that the user wrote, only the file and line matter.
    return located_error(error)


def _out_of_memory(error: Exception) -> UserError | None:
    """Return the error of a machine or device without enough memory, or None."""
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    # TensorFlow, whose error it is, may not be imported.
    if type(error).__name__ == "ResourceExhaustedError":
        return UserError(
            "out of memory: lower batch_size of `--hparams` to train or time, or of "
            f"`--decode_hparams` to translate.\nTensorFlow: {reason}"
        )
    if isinstance(error, MemoryError) or any(text in str(error) for text in _REFUSED):
        return UserError(
            "out of memory: close other programs, raise the limit of `ulimit -v` if "
            f"there is one, or lower batch_size.\nThe system: {reason}"
        )
    return None
