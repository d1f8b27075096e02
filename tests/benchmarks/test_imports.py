"""The benchmarks import only names that the package has."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from tests.support.without_tensorflow import run_without_tensorflow

REPOSITORY = Path(__file__).resolve().parents[2]
BENCHMARKS = sorted((REPOSITORY / "benchmarks").rglob("*.py"))


def is_there(module: str, name: str) -> bool:
    found = hasattr(importlib.import_module(module), name)
    return found or importlib.util.find_spec(f"{module}.{name}") is not None


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


@pytest.mark.parametrize("program", ["measure", "peers.compare", "rows.train"])
def test_a_program_starts_without_packages_that_an_accelerator_lacks(program):
    ended = run_without_tensorflow(f"benchmarks.accelerator.{program}", "--help")
    assert ended.returncode == 0, ended.stderr
