"""Find registered problems, hparams sets and models by name.

The catalogues are imported on first use: the modules of `problems/` and
`hparams/`, and the user's own package given by `--t2t_usr_dir`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from t2t_repro import registry
from t2t_repro.data.problem import Problem, ReversedProblem
from t2t_repro.errors import UsageError
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


def load(usr_dir: str | Path | None = None) -> None:
    """Register the built-in catalogues and the user's package.

    Args:
        usr_dir: Folder of the user's package, which has an `__init__.py` and is
            imported under the name of the folder.

    Raises:
        UsageError: If `usr_dir` is not such a folder.
    """
    for package in (PROBLEMS, HPARAMS):
        _load_catalogue(package)
    _declare_models()
    if usr_dir is not None:
        _load_user_package(Path(usr_dir).expanduser().resolve())


@cache
def _load_catalogue(package: str) -> None:
    for module in importlib.import_module(package).MODULES:
        importlib.import_module(f"{package}.{module}")


def _declare_models() -> None:
    for name, (module, summary) in MODELS.items():
        registry.models.declare(name, module=module, summary=summary)


def _load_user_package(folder: Path) -> ModuleType:
    init_file = folder / "__init__.py"
    if not init_file.is_file() or not folder.name.isidentifier():
        raise UsageError(
            f"t2t_usr_dir: received {folder}, expected a folder named like a Python "
            "package, with an __init__.py that imports your registrations."
        )
    loaded = sys.modules.get(folder.name)
    if loaded is not None:
        if getattr(loaded, "__file__", None) == str(init_file):
            return loaded
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
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


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
