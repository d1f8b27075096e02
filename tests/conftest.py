"""Fixtures of all tests."""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.trained_system import Trained, train_system

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# oneDNN's own allocator never returns memory to the system.
os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_collection_finish() -> None:
    """Take the objects of all imports out of garbage collections.

    They live until the end. `release_memory` would visit them after every module,
    which takes longer than most modules. Tracing a graph makes so many objects that
    Python's default threshold starts thousands of collections. The third value makes
    full ones, which free traced graphs within a module, as frequent as before.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 3)


@pytest.fixture(scope="session", autouse=True)
def configuration_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the tests and their processes out of the developer's configuration."""
    folder = tmp_path_factory.mktemp("configuration")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="module", autouse=True)
def release_memory() -> Iterator[None]:
    """Free the graphs that a module traced, or the worker grows to gigabytes.

    `ReplicaContext.all_reduce`, which every optimizer calls, has a custom gradient.
    TensorFlow registers the custom gradients of a graph in a global table and never
    removes them, and each keeps its graph alive.
    """
    yield
    if "tensorflow" not in sys.modules:
        return
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops

    registered = ops.gradient_registry._registry
    for name in [name for name in registered if name.startswith("CustomGradient-")]:
        del registered[name]
    gc.collect()
    context.context().clear_kernel_cache()
    if sys.platform == "linux":
        ctypes.CDLL("libc.so.6").malloc_trim(0)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of data sets beside the checkout, or skip the test."""
    given = os.environ.get("T2T_SHARED_DATA")
    folder = Path(given) if given else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}; set T2T_SHARED_DATA to the folder of data")
    return folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Return a copy of a tiny system, which the first worker that needs it trains."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers
    with (shared / "trained.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "trained.pickle").exists():
            (shared / "trained").mkdir()
            made = pickle.dumps(train_system(shared / "trained"))
            (shared / "trained.pickle").write_bytes(made)
    system = pickle.loads((shared / "trained.pickle").read_bytes())
    return system.copied_to(tmp_path_factory.mktemp("copy") / "run")


@pytest.fixture(scope="module")
def shared_translators() -> Iterator[None]:
    """Share translators among the systems of a module that have equal weights.

    Every command loads its system, and tracing a search takes seconds.
    """
    from t2t_repro.runs.system import System

    translators: dict[Any, Any] = {}
    new_translator = System._new_translator

    def shared_translator(self: System, hparams: Any) -> Any:
        weights = tuple(value.numpy().tobytes() for value in self.model.weights)
        key = (weights, self.problem.name, repr(self.run.hparams), hparams)
        if key not in translators:
            translators[key] = new_translator(self, hparams)
        return translators[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(System, "_new_translator", shared_translator)
        yield


@pytest.fixture
def without_xla(monkeypatch):
    """Compile nothing: XLA takes seconds per batch shape and never frees its code."""
    import t2t_repro.runs.devices

    monkeypatch.setattr(
        t2t_repro.runs.devices, "should_use_xla", lambda strategy: False
    )


@pytest.fixture
def eager(monkeypatch):
    """Train without graphs; see `train_eagerly`."""
    from tests.support.eager import train_eagerly

    train_eagerly(monkeypatch)
