"""Make the catalogues and `docs/results` of a checkout importable.

An installed wheel has `t2t_repro.problems` and `t2t_repro.hparams` inside the package
(`setup.py` maps them). In a checkout, they are beside it, and a finder locates these
two names. It precedes all others, because an editable install of another checkout also
has a finder for them.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_FOLDERS = {f"t2t_repro.{name}": name for name in ("problems", "hparams")}


class CatalogueFinder(MetaPathFinder):
    """Finder of the two catalogue packages in the folders beside `t2t_repro/`."""

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname not in _FOLDERS:
            return None
        init_file = _PACKAGE.parent / _FOLDERS[fullname] / "__init__.py"
        return importlib.util.spec_from_file_location(fullname, init_file)


def make_catalogues_importable() -> None:
    """Put the finder before all others if the package is in a checkout."""
    if not any((_PACKAGE / name).is_dir() for name in _FOLDERS.values()):
        sys.meta_path.insert(0, CatalogueFinder())


def make_results_importable() -> bool:
    """Add `docs/` to the path of modules, for its package `results`.

    Returns:
        Whether the package is in a checkout, which has this folder.
    """
    docs = _PACKAGE.parent / "docs"
    if not (docs / "results" / "__init__.py").is_file():
        return False
    if str(docs) not in sys.path:
        sys.path.insert(0, str(docs))
    return True
