"""Imports follow the floor plan."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2t_repro import hparams, problems
from t2t_repro.features import NAMES, declared

# A module imports only from its own package and from lower floors; the lowest is first.
FLOORS = (
    ("t2t_repro._checkout",),
    (
        *("t2t_repro", "t2t_repro.constants", "t2t_repro.errors", "t2t_repro.machine"),
        *("t2t_repro.progress", "t2t_repro.recently_used", "t2t_repro.text_tables"),
    ),
    ("t2t_repro.files",),
    ("t2t_repro.registry", "t2t_repro.features"),  # the table of features
    ("t2t_repro.settings", "t2t_repro.user_packages"),
    ("t2t_repro.layers", "t2t_repro.text"),
    ("t2t_repro.translation_scores",),
    ("t2t_repro.data",),
    ("t2t_repro.models",),
    ("t2t_repro.problems", "t2t_repro.hparams"),
    ("t2t_repro.catalogue", "t2t_repro.training", "t2t_repro.decoding"),
    ("t2t_repro.runs",),
    ("t2t_repro.cli",),
    tuple(f"t2t_repro.features.{name}" for name in NAMES),
    ("results",),
)
FLOOR_OF = {unit: number for number, units in enumerate(FLOORS) for unit in units}
# Registrations only; nothing imports them by an import statement.
CATALOGUES = {"problems": "t2t_repro.problems", "hparams": "t2t_repro.hparams"}
# The package of a checkout, in `docs/`, and the only module that imports it.
RESULTS, USER_OF_RESULTS = (
    "results",
    "t2t_repro.features.reproduction.command_reproduce",
)
FEATURES = "t2t_repro.features."

# Each is checked with all modules that it imports.
WITHOUT_TENSORFLOW = [
    "t2t_repro.cli.decode",
    "t2t_repro.cli.evaluate",
    "t2t_repro.cli.export",
    "t2t_repro.cli.list",
    "t2t_repro.cli.main",
    "t2t_repro.cli.score",
    "t2t_repro.cli.show",
    "t2t_repro.cli.train",
    "t2t_repro.data.encoding",
    "t2t_repro.features.attention_view.plugin",
    "t2t_repro.features.ctranslate2.ctranslate2_system",
    "t2t_repro.features.ensembles.ensemble_training",
    "t2t_repro.features.planning.command_plan",
    "t2t_repro.features.scores.command_card",
    "t2t_repro.features.tensor2tensor.command_import_tensor2tensor",
    "t2t_repro.features.tensor2tensor.command_main",
    "t2t_repro.features.tensor2tensor.package_stand_ins",
]
FRAMEWORKS = ("tensorflow", "keras", "tensorflow_text", "tensorflow_datasets")

REPOSITORY = Path(__file__).resolve().parent.parent


def _modules() -> dict[str, Path]:
    """Return the file by module name: the package, both catalogues and `results`."""
    roots = {"t2t_repro": "t2t_repro", **CATALOGUES, "docs/results": RESULTS}
    found = {}
    for folder, package in roots.items():
        for file in (REPOSITORY / folder).rglob("*.py"):
            parts = file.relative_to(REPOSITORY / folder).with_suffix("").parts
            found[".".join((package, *parts)).removesuffix(".__init__")] = file
    return found


MODULES = _modules()


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def _unit(module: str) -> str:
    """Return the entry of the floor plan, or the feature, that a module belongs to."""
    first, *rest = module.split(".")
    if first == RESULTS:
        return RESULTS
    return ".".join((first, *rest[: 2 if module.startswith(FEATURES) else 1]))


def _floor(module: str) -> int:
    return FLOOR_OF[_unit(module)]


def _running_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module that may run: not what only a type checker reads."""
    yield tree
    is_typing = isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING"
    for node in [] if is_typing else ast.iter_child_nodes(tree):
        yield from _running_nodes(node)


def _imports(module: str, *, with_types: bool = False) -> Iterator[str]:
    """Return the names that a module imports, anywhere in its text.

    With types, those under `TYPE_CHECKING` are among them.
    """
    package = module.split(".")
    if MODULES[module].name != "__init__.py":
        package = package[:-1]
    tree = _tree(module)
    for node in ast.walk(tree) if with_types else _running_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{source}.{alias.name}"
                yield name if name in MODULES else source


@functools.cache
def _own_imports(module: str, *, with_types: bool = False) -> frozenset[str]:
    units = set(map(_unit, MODULES))
    imported = _imports(module, with_types=with_types)
    return frozenset(name for name in imported if _unit(name) in units)


@functools.cache
def _siblings(module: str) -> frozenset[str]:
    """Return the imports from the same package."""
    imported = _own_imports(module) & MODULES.keys()
    return frozenset(name for name in imported if _unit(name) == _unit(module))


def _needs(module: str, name: str) -> bool:
    """Return whether a module of a catalogue declares that it needs a feature."""
    for catalogue in (problems, hparams):
        needed = catalogue.MODULES.get(module.rpartition(".")[2], ())
        if module.startswith(f"{catalogue.__name__}.") and name.startswith(FEATURES):
            return name.split(".")[2] in needed
    return False


def _is_declared(module: str, name: str) -> bool:
    """Return whether a module is of a feature that declares the feature of `name`."""
    if not (module.startswith(FEATURES) and name.startswith(FEATURES)):
        return _needs(module, name)
    uses = declared()[module.split(".")[2]].uses
    return name.split(".")[2] in uses


@pytest.mark.parametrize("module", sorted(MODULES))
def test_every_module_has_a_floor(module):
    assert _unit(module) in FLOOR_OF


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_down_only(module):
    """Types, too; but `runs` has methods whose results have the types of features."""
    upward = [
        f"{module} (floor {_floor(module)}) imports {name} (floor {_floor(name)})"
        for name in _own_imports(module, with_types=_unit(module) != "t2t_repro.runs")
        if _unit(name) != _unit(module)
        and _floor(name) >= _floor(module)
        and not _is_declared(module, name)
        # The package itself holds the version and nothing else.
        and name != "t2t_repro"
        and (_unit(name), module) != (RESULTS, USER_OF_RESULTS)
    ]
    assert upward == []


def test_the_package_of_a_checkout_is_imported_only_when_a_flag_needs_it():
    lines = MODULES[USER_OF_RESULTS].read_text(encoding="utf-8").splitlines()
    assert not [x for x in lines if re.match(rf"(from|import) {RESULTS}\b", x)]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_nothing_imports_a_catalogue_but_itself(module):
    catalogues = set(CATALOGUES.values()) - {_unit(module)}
    assert not [name for name in _own_imports(module) if _unit(name) in catalogues]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_inside_a_package_have_no_cycle(module):
    seen: set[str] = set()
    waiting = {*_siblings(module)}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= _siblings(name) - seen
    assert module not in seen


@pytest.mark.parametrize(
    "module", sorted(name for name in MODULES if name.startswith("t2t_repro.layers"))
)
def test_layers_are_keras_only_and_never_see_hparams(module):
    imported = {name.split(".")[0] for name in _imports(module)}
    assert "tensorflow" not in imported
    assert "t2t_repro.settings.hparams" not in _own_imports(module)


def test_modules_that_must_load_quickly_import_no_framework():
    catalogues = [n for n in MODULES if _unit(n) in CATALOGUES.values()]
    names = [*WITHOUT_TENSORFLOW, *catalogues]
    program = (
        f"import importlib, sys\n"
        f"for name in {names!r}:\n"
        f"    importlib.import_module(name)\n"
        f"    loaded = [f for f in {FRAMEWORKS!r} if f in sys.modules]\n"
        f"    assert not loaded, f'{{name}} imports {{loaded}}'\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("module", sorted(MODULES))
def test_library_code_does_not_assert(module):
    tree = _tree(module)
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_no_function_is_longer_than_80_lines(module):
    tree = _tree(module)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    too_long = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, functions) and (node.end_lineno or 0) - node.lineno >= 80
    ]
    assert too_long == []


def _messages(module: str) -> Iterator[str]:
    """Yield the strings of a module that are no docstrings; "{}" is for a value."""
    tree = _tree(module)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):  # parents come before their children
        if isinstance(node, ast.Expr):
            skipped.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            texts = (getattr(part, "value", "{}") for part in node.values)
            yield "".join(t if isinstance(t, str) else "{}" for t in texts)
        elif isinstance(node, ast.Constant) and node not in skipped:
            yield str(node.value)


def _has_flags(module: str) -> bool:
    """Return whether a module belongs to the command line."""
    # The old names of tensor2tensor are answers to its flags.
    is_command = module.rpartition(".")[2].startswith(("command", "old_names"))
    return is_command or _unit(module) == "t2t_repro.cli"


@pytest.mark.parametrize("module", [name for name in MODULES if not _has_flags(name)])
def test_messages_of_the_library_name_arguments_and_not_flags(module):
    # A Python program gave train_steps=30; the flag has the same name after "--".
    # Flags may be in whole commands, in backticks or on a set's card.
    command = re.compile("`.*?`|Command:.*", re.DOTALL)
    named = [
        text
        for text in _messages(module)
        if " " in text and re.search(r"(?<!\S)\(?--[a-z]", command.sub("", text))
    ]
    assert named == []


def test_features_use_each_other_without_a_cycle():
    seen: dict[str, set[str]] = {}
    for name in NAMES:
        waiting = set(declared()[name].uses)
        seen[name] = set()
        while waiting:
            used = waiting.pop()
            seen[name].add(used)
            waiting |= set(declared()[used].uses) - seen[name]
    assert [name for name in NAMES if name in seen[name]] == []


def test_every_folder_of_a_feature_is_in_the_table():
    folders = {
        module.split(".")[2] for module in MODULES if module.startswith(FEATURES)
    }
    assert folders == set(NAMES)
