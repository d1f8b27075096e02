"""Packages for `--t2t_usr_dir` that were written for tensor2tensor."""

from __future__ import annotations

import contextlib
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from t2t_repro import catalogue, registry

IMPORTS = """\
from __future__ import absolute_import, division, print_function
import os
from tensor2tensor.data_generators import generator_utils, problem, text_encoder
from tensor2tensor.data_generators import text_problems
from tensor2tensor.data_generators import translate
from tensor2tensor.models import transformer
from tensor2tensor.utils import registry

TRAIN = problem.DatasetSplit.TRAIN
"""
_NUMBERS = itertools.count()


@contextlib.contextmanager
def old_packages(folder: Path) -> Iterator[Callable[[str], Path]]:
    """Give a function that writes and imports a package; forget all packages at last.

    Args:
        folder: Folder of the packages.
    """

    def load(code: str, imports: str = IMPORTS) -> Path:
        package = folder / f"users_old_package_{next(_NUMBERS)}"
        package.mkdir()
        (package / "__init__.py").write_text("from . import code\n")
        (package / "code.py").write_text(imports + textwrap.dedent(code))
        catalogue.load(package)
        return package

    catalogue.load()
    _forget()
    registries = (registry.problems, registry.hparams_sets, registry.models)
    with contextlib.ExitStack() as stack:
        for one in registries:
            stack.enter_context(one.isolated())
        yield load
    _forget()


def _forget() -> None:
    """Remove the packages and the stand-ins that this process has imported."""
    sys.meta_path[:] = [x for x in sys.meta_path if "stand_ins" not in str(type(x))]
    for name in [*sys.modules]:
        if name.startswith(("users_old_package", "tensor2tensor")):
            del sys.modules[name]
