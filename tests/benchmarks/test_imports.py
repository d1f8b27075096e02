"""The benchmarks import only names that the package has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.without_tensorflow import run_without_tensorflow

REPOSITORY = Path(__file__).resolve().parents[2]
BENCHMARKS = sorted((REPOSITORY / "benchmarks").rglob("*.py"))


def defined_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines or imports, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # names that a package imports when they are first used


def is_there(module: str, name: str) -> bool:
    path = REPOSITORY.joinpath(*module.split("."))
    if path.joinpath(f"{name}.py").is_file() or path.joinpath(name).is_dir():
        return True
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not source.is_file():
        return False
    return name in defined_names(ast.parse(source.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "path", BENCHMARKS, ids=lambda path: str(path.relative_to(REPOSITORY))
)
def test_a_benchmark_imports_names_that_exist(path):
    missing = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("t2t_repro")
        for alias in node.names
        if not is_there(node.module or "", alias.name)
    ]
    assert missing == []


def test_the_trainer_of_rows_starts_without_packages_that_an_accelerator_lacks():
    ended = run_without_tensorflow("benchmarks.accelerator.rows.train", "--help")
    assert ended.returncode == 0, ended.stderr
