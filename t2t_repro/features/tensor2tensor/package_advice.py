"""Advice on the names of tensor2tensor in a user's package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from t2t_repro.features.tensor2tensor.old_names import SETS


def set_here(name: str) -> str:
    """Return how to write one of the sets of `SETS` here, with the same values."""
    old = SETS[name]
    if not old.base:
        return f"no set here has its values; {old.answer}"
    changes = ",".join(f"{key}={value}" for key, value in old.changes.items())
    parse = f'.parse("{changes}")' if changes else ""
    return f'catalogue.hparams("{old.base}"){parse}'


_SET = (
    "from t2t_repro import catalogue; instead of transformer_base(): "
    f"{set_here('transformer_base')}.replace(...)"
)

# What to write instead of an import of tensor2tensor, by a word of its line; the first
# one that is found counts.
IMPORTS = {
    "registry": "from t2t_repro.registry import register_problem, register_hparams",
    "hparams": _SET,
    "models": _SET,
    "data_generators": "from t2t_repro.data.problem import Problem; its method `pairs` "
    "yields pairs of source and target",
    "layers": "from t2t_repro import layers; docs/extending.md registers an attention",
}


def answers(folder: Path) -> list[str]:
    """Return a line for each import of tensor2tensor and each use of one of its sets.

    Args:
        folder: Folder of the user's package.

    Returns:
        Lines "file:line: `code`: what to write instead".
    """
    return [
        f"{path}:{line}: `{code}`: {instead}"
        for path in sorted(folder.rglob("*.py"))
        for line, code, instead in _answers_of(path)
    ]


def _answer(code: str) -> str:
    """Return what to write instead of an import of tensor2tensor."""
    return next(
        (instead for word, instead in IMPORTS.items() if word in code),
        "there is no such module here",
    )


def _answers_of(path: Path) -> Iterator[tuple[int, str, str]]:
    try:
        nodes = [*ast.walk(ast.parse(path.read_bytes()))]
    except (OSError, SyntaxError, ValueError):  # written for Python 2, for example
        return
    imported: dict[str, str] = {}  # name in the file -> name in tensor2tensor
    found = []
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) and (names := _names_in(node)):
            imported |= names
            code = ast.unparse(node)
            found.append((node.lineno, code, _answer(code)))
    for node in nodes:
        if isinstance(node, ast.Call):
            name = _called_set(node, imported)
            if name in SETS:
                found.append((node.lineno, ast.unparse(node), set_here(name)))
    yield from sorted(found)


def _names_in(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return the names that an import of tensor2tensor defines, and their origins."""
    if isinstance(node, ast.ImportFrom):
        if not _is_tensor2tensors(node.module) or node.level:
            return {}
        names = {alias.asname or alias.name: alias.name for alias in node.names}
        return {name: name for name in SETS} if "*" in names else names
    return {
        alias.asname or "tensor2tensor": alias.name
        for alias in node.names
        if _is_tensor2tensors(alias.name)
    }


def _is_tensor2tensors(module: str | None) -> bool:
    return (module or "").partition(".")[0] == "tensor2tensor"


def _called_set(call: ast.Call, imported: dict[str, str]) -> str:
    """Return the set that a call makes with a name of tensor2tensor, or ""."""
    root = function = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id not in imported:
        return ""
    name = function.attr if isinstance(function, ast.Attribute) else imported[root.id]
    if name == "hparams" and call.args and isinstance(call.args[0], ast.Constant):
        return str(call.args[0].value)  # registry.hparams("transformer_base")
    return name
