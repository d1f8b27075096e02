"""Fixtures of all tests."""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module", autouse=True)
def _release_memory() -> Iterator[None]:
    """Give the memory of a module's models and traced graphs back to the system.

    Otherwise a worker keeps those of all its modules and grows to several gigabytes.
    """
    yield
    if "keras" not in sys.modules:
        return
    sys.modules["keras"].utils.clear_session()
    gc.collect()
    libc = ctypes.util.find_library("c")
    if sys.platform == "linux" and libc is not None:
        # Python and TensorFlow free memory that the C library does not hand back.
        ctypes.CDLL(libc).malloc_trim(0)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of data sets beside the checkout, or skip the test."""
    given = os.environ.get("T2T_SHARED_DATA")
    folder = Path(given) if given else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}; set T2T_SHARED_DATA to the folder of data")
    return folder
