"""Find registered problems, hparams sets and models by name.

The catalogues are imported on first use: the modules of `problems/` and
`hparams/`, and the user's own package given by `--t2t_usr_dir`.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro import features, registry
from t2t_repro.settings.hparams import HParams
from t2t_repro.user_packages import import_package

if TYPE_CHECKING:
    from t2t_repro.data.problem import Problem

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
        UserError: If the package raises an error; the message names the file and line.
    """
    for package in (PROBLEMS, HPARAMS):
        _load_catalogue(package)
    _declare_models()
    if usr_dir is not None:
        import_package(Path(usr_dir).expanduser().resolve())


@cache
def _load_catalogue(package: str) -> None:
    for module, needed in importlib.import_module(package).MODULES.items():
        if set(needed) <= set(features.NAMES):
            importlib.import_module(f"{package}.{module}")


def _declare_models() -> None:
    for name, (module, summary) in MODELS.items():
        registry.models.declare(name, module=module, summary=summary)


def problem(name: str) -> Problem:
    """Return the problem of that name; `<name>_rev` swaps inputs and targets.

    Raises:
        UsageError: If the name is unknown; the message names the closest ones.
    """
    # An accelerator without SentencePiece finds hparams sets, too.
    from t2t_repro.data.problem import ReversedProblem

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
