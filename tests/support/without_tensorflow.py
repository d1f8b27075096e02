"""Run a module on Keras's JAX backend as if TensorFlow were not installed.

``python tests/support/without_tensorflow.py module [argument ...]``
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

HIDDEN = (
    "tensorflow",
    "tensorflow_text",
    "tensorflow_datasets",
    "tensorboard",
    "sentencepiece",
    "sacrebleu",
    "PIL",
)
# Environment in which XLA makes slow code quickly.
COMPILED_QUICKLY = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true"
}
REPOSITORY = Path(__file__).resolve().parents[2]


class HiddenPackages:
    """A finder that refuses packages, to be the first in `sys.meta_path`."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise the error of a package that is not installed, or return None."""
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def run_without_tensorflow(
    module: str | Path, *arguments: object
) -> subprocess.CompletedProcess[str]:
    """Run a module in its own process, and return its exit code and output."""
    environment = os.environ | {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        **COMPILED_QUICKLY,
        "PYTHONPATH": str(REPOSITORY),
    }
    command = [sys.executable, __file__, *map(str, (module, *arguments))]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False
    )


def main(module: str, *arguments: str) -> None:
    sys.meta_path.insert(0, HiddenPackages())
    sys.argv = [module, *arguments]
    if module.endswith(".py"):
        runpy.run_path(module, run_name="__main__")
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
