"""Find registered problems, hparams sets and models by name.

The catalogues are imported on first use: the modules of `problems/` and
`hparams/`, and the user's own package given by `--t2t_usr_dir`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from functools import cache
from pathlib import Path
from types import ModuleType

from t2t_repro import features, registry
from t2t_repro.data.problem import Problem, ReversedProblem
from t2t_repro.errors import UsageError, UserError
from t2t_repro.settings.hparams import HParams

PROBLEMS = "t2t_repro.problems"
HPARAMS = "t2t_repro.hparams"

# Models are declared, not imported: a listing must not wait for Keras.
MODELS = {
    "transformer": (
        "t2t_repro.models.transformer",
        "Encoder and decoder of the paper, with the wirings of the hparams sets.",
    ),
}

# Folders of the user's packages, each with a separator at its end.
_users_folders: set[str] = set()


def load(usr_dir: str | Path | None = None) -> None:
    """Register the built-in catalogues and the user's package.

    Args:
        usr_dir: Folder of the user's package, which has an `__init__.py` and is
            imported under the name of the folder.

    Raises:
        UsageError: If `usr_dir` is not such a folder.
        UserError: If the package raises an error; the message names the file and line.
    """
    for package in (PROBLEMS, HPARAMS):
        _load_catalogue(package)
    _declare_models()
    if usr_dir is not None:
        _load_user_package(Path(usr_dir).expanduser().resolve())


@cache
def _load_catalogue(package: str) -> None:
    for module, needed in importlib.import_module(package).MODULES.items():
        if set(needed) <= set(features.NAMES):
            importlib.import_module(f"{package}.{module}")


def _declare_models() -> None:
    for name, (module, summary) in MODELS.items():
        registry.models.declare(name, module=module, summary=summary)


def is_imported(usr_dir: str | Path) -> bool:
    """Return whether this process has imported the package in a folder."""
    folder = Path(usr_dir).expanduser().resolve()
    loaded = sys.modules.get(folder.name)
    return getattr(loaded, "__file__", None) == str(folder / "__init__.py")


def _load_user_package(folder: Path) -> ModuleType:
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
    return _import_package(folder.name, init_file)


def _import_package(name: str, init_file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, init_file)
    if spec is None or spec.loader is None:
        raise UsageError(f"t2t_usr_dir: cannot import {init_file}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _users_folders.add(str(init_file.parent) + os.sep)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
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
        The message; None if no code of the package was running, or if the error is no
        `Exception`, such as an interrupt.
    """
    place, line = _origin(error)
    if not place or not isinstance(error, Exception):
        return None
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    root = (missing or "").partition(".")[0]
    if root == "tensor2tensor" and root in features.NAMES:
        return _tensor2tensor_imported(place, line)
    text = str(error)
    if not isinstance(error, UserError):
        detail = error.msg if isinstance(error, SyntaxError) else text
        text = f"{type(error).__name__}: {detail}"
    return UserError(text if place in text else f"{place}: {text}")


def _tensor2tensor_imported(place: str, line: str) -> UserError:
    folder = next(folder for folder in _users_folders if place.startswith(folder))
    # `importlib` imports without a statement.
    package = features.load("tensor2tensor", "package_advice")
    lines = package.answers(Path(folder)) or [f"{place}: `{line}`"]
    return UserError(
        "tensor2tensor is not installed, but this package uses it:\n"
        + "\n".join(lines)
        + "\ndocs/from_tensor2tensor.md shows how to change a package."
    )


def _origin(error: BaseException) -> tuple[str, str]:
    """Return where in the user's package an error began, as `file:line`, and the line.

    Both are empty if no code of the package was running.
    """
    folders = tuple(_users_folders)
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(folders):
        return f"{error.filename}:{error.lineno}", (error.text or "").strip()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(folders):
            return f"{frame.filename}:{frame.lineno}", frame.line or ""
    return "", ""


def problem(name: str) -> Problem:
    """Return the problem of that name; `<name>_rev` swaps inputs and targets.

    Raises:
        UsageError: If the name is unknown; the message names the closest ones.
    """
    _load_catalogue(PROBLEMS)
    base = name.removesuffix(registry.REVERSED_SUFFIX)
    known = base if base in registry.problems else name
    instance = registry.problems.get(known)()
    return instance if known == name else ReversedProblem(instance)


def hparams(name: str) -> HParams:
    """Return the hparams set of that name.

    Raises:
        UsageError: If the name is unknown; the message names the closest ones.
    """
    _load_catalogue(HPARAMS)
    return registry.hparams_sets.get(name)()


def model(name: str) -> type:
    """Return the model class of that name; imports Keras.

    Raises:
        UsageError: If the name is unknown; the message names the closest ones.
    """
    _declare_models()
    importlib.import_module(registry.models.entry(name).module)
    return registry.models.get(name)
