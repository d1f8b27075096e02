"""The features, and their contributions to the core.

A feature is a folder here that holds all of its code: library, commands and flags. The
core never imports a feature directly; it looks it up in this table. A folder and its
line in `NAMES` can therefore be deleted, and the rest still works.

The `__init__.py` of a feature declares what it adds and imports nothing else.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType

from t2t_repro.errors import UsageError

# In the order of their commands in the help.
NAMES = (
    "planning",
    "scores",
    "attention_view",
    "ctranslate2",
    "saved_model",
    "reproduction",
    "parsing",
    "ensembles",
    "synthetic",
    "tensor2tensor",
    "huggingface",
    "serving",
)


@dataclass(frozen=True)
class Command:
    """One command of `t2t`.

    Attributes:
        module: Module with `DESCRIPTION`, `add_flags(parser)` and `run(args)`.
        summary: One line of help.
        before: The core's command that it precedes in the help; empty for the end.
    """

    module: str
    summary: str
    before: str = ""


@dataclass(frozen=True)
class Feature:
    """Contributions of a feature to the core.

    Attributes:
        commands: Its commands by name.
        exports: Formats of `t2t export`, each with its module; see `cli/export.py`.
        imports: Origins of `t2t import`, each with its module; see
            `cli/import_model.py`.
        tokenizers: Suffixes of vocabulary files, each with the module whose
            `load_tokenizer(path)` reads them; see `text/tokenizer.py`.
        prepared_data: Modules that describe data of other programs, whose
            `adopt(problem, folder)` returns a `PreparedData` or None.
        engines: Engines of `t2t decode` and `evaluate`, each with its module; see
            `cli/engines.py`.
        evaluators: Modules whose `make_evaluators(training)` returns functions that run
            at every evaluation of a training run; see `runs/evaluators.py`.
        trainers: Modules that train in another way on request, with `add_flags(parser)`
            and `requested(args, settings)`, which returns None or an object with
            `train(data)` and `check(problem)`; see `cli/train.py`.
        groups: Modules that load several runs as one system; see `runs/run.py`.
        packages: Modules that help packages of `--t2t_usr_dir`: `before_import()` makes
            modules known that a package imports, and `advice(error)` returns what to
            write instead of code that failed, or "".
        reports: Modules with a report that `t2t evaluate` prints on request; see
            `cli/report.py`.
        uses: Names of the features that it imports.
    """

    commands: Mapping[str, Command] = field(default_factory=dict)
    exports: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, str] = field(default_factory=dict)
    tokenizers: Mapping[str, str] = field(default_factory=dict)
    prepared_data: tuple[str, ...] = ()
    engines: Mapping[str, str] = field(default_factory=dict)
    evaluators: tuple[str, ...] = ()
    trainers: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()


@cache
def declared() -> dict[str, Feature]:
    """Return the declaration of each feature by name."""
    return {
        name: importlib.import_module(f"{__name__}.{name}").FEATURE for name in NAMES
    }


def module_names(field: str) -> dict[str, str]:
    """Return the names of the modules that the features name in a field.

    Args:
        field: A field of `Feature`, such as "engines" or "reports".

    Returns:
        The modules, by the names that the field gives them, or else by their own.
    """
    found = {}
    for feature in declared().values():
        named = getattr(feature, field)
        if not isinstance(named, Mapping):
            named = dict(zip(named, named, strict=True))
        found |= named
    return found


def modules(field: str) -> dict[str, ModuleType]:
    """Import the modules of a field; see `module_names`."""
    names = module_names(field)
    return {key: importlib.import_module(name) for key, name in names.items()}


def load(name: str, module: str) -> ModuleType:
    """Import a module of a feature.

    Args:
        name: Name of the feature.
        module: Name of the module in its folder.

    Raises:
        UsageError: If this installation lacks the feature.
    """
    if name not in NAMES:
        raise UsageError(
            f"this needs the feature {name!r}, which this installation does not have; "
            f"it has {', '.join(NAMES)}."
        )
    return importlib.import_module(f"{__name__}.{name}.{module}")
