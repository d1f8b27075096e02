"""Modules with tensor2tensor's names, for a package that was written for it.

They are there when a line of such a package imports them, and nowhere else. An
installed tensor2tensor is not used then, because no TensorFlow of today can run it.
What they hold is in the modules `package_*`; `package_refusals` answers all other
names.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from t2t_repro.features.tensor2tensor import (
    package_adapter,
    package_encoders,
    package_hparams,
    package_problems,
    package_refusals,
    package_texts,
)
from t2t_repro.user_packages import running_line

_ROOT = "tensor2tensor"
_DATA = f"{_ROOT}.data_generators"
# Modules that only hold modules.
_FOLDERS = {
    _ROOT,
    *(f"{_ROOT}.{name}" for name in ("bin", "data_generators", "layers", "models")),
    *(
        f"{_ROOT}.{name}"
        for name in ("models.research", "rl", "utils", "visualization")
    ),
}
_TENSORFLOW_1 = re.compile(r"module 'tensorflow' has no attribute '\w+'")


def _members() -> dict[str, dict[str, Any]]:
    """Return what each module holds."""
    adapter, hparams = package_adapter, package_hparams
    sets = hparams.set_functions()
    problem = package_problems
    return {
        f"{_ROOT}.utils.registry": {
            "register_problem": adapter.register_problem,
            "register_base_problem": adapter.register_problem,
            "problem": adapter.problem,
            "register_hparams": hparams.register_hparams,
            "hparams": hparams.hparams,
            "register_model": package_refusals.register_model,
            "register_ranged_hparams": package_refusals.leave_out,
            "register_optimizer": package_refusals.leave_out,
        },
        f"{_ROOT}.utils.hparam": {"HParams": hparams.PackageHParams},
        f"{_ROOT}.layers.common_hparams": {"basic_params1": sets.pop("basic_params1")},
        f"{_ROOT}.models.transformer": sets,
        f"{_DATA}.problem": {
            "Problem": problem.PackageBase,
            "DatasetSplit": problem.DatasetSplit,
        },
        f"{_DATA}.text_problems": {
            "Text2TextProblem": problem.Text2TextProblem,
            "Text2textTmpdir": problem.Text2textTmpdir,
            "Text2textTmpdirTokens": problem.Text2textTmpdirTokens,
            "VocabType": problem.VocabType,
            "text2text_generate_encoded": problem.text2text_generate_encoded,
            **package_texts.TEXT_MEMBERS,
        },
        f"{_DATA}.translate": {
            "TranslateProblem": problem.TranslateProblem,
            "TranslateDistillProblem": problem.TranslateDistillProblem,
            "compile_data": package_texts.compile_data,
        },
        f"{_DATA}.text_encoder": package_encoders.MEMBERS,
        f"{_DATA}.generator_utils": {
            "get_or_generate_vocab": package_encoders.get_or_generate_vocab,
            "get_or_generate_vocab_inner": package_encoders.get_or_generate_vocab_inner,
            **package_texts.FILE_MEMBERS,
        },
    }


class _Finder(MetaPathFinder, Loader):
    """Finder and loader of the modules that a line of a package imports."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        del path, target
        if fullname.partition(".")[0] != _ROOT or not running_line():
            return None
        return spec_from_loader(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(_members().get(module.__name__, {}))
        vars(module)["__getattr__"] = functools.partial(_attribute, module.__name__)


def _attribute(module: str, name: str) -> object:
    """Return a module of a folder, or what stands for a name without a stand-in."""
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if module in _FOLDERS:
        return importlib.import_module(f"{module}.{name}")
    return package_refusals.Refusal(f"{module}.{name}")


def before_import() -> None:
    """Make the modules known to the code of packages."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def advice(error: Exception) -> str:
    """Return what to write instead of a name of TensorFlow 1, or ""."""
    is_old = isinstance(error, AttributeError) and _TENSORFLOW_1.search(str(error))
    return "write `import tensorflow.compat.v1 as tf`" if is_old else ""
