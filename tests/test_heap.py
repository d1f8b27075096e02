"""Tests of `heap`."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Allocates and frees 256 MB ten times, touching every page, and prints the page faults
# after the first time.
FAULTS = """
import ctypes, resource, sys
from t2t_repro.heap import keep_freed_memory
if sys.argv[1] == "keep":
    print(keep_freed_memory())
else:
    print(False)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
size = 256 * 2**20
def use():
    block = libc.malloc(ctypes.c_size_t(size))
    ctypes.memset(block, 1, size)
    libc.free(ctypes.c_void_p(block))
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

needs_glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="mallopt is a function of glibc"
)


def faults(argument: str, **environment: str) -> tuple[bool, int]:
    """Run FAULTS in `environment`; return whether memory was kept, and the faults."""
    output = subprocess.run(
        [sys.executable, "-c", FAULTS, argument],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout.split()
    return output[0] == "True", int(output[1])


@needs_glibc
def test_kept_memory_is_used_again_without_page_faults() -> None:
    kept, with_it = faults("keep")
    assert kept
    _, without_it = faults("return")
    assert with_it < 1000
    assert without_it > 10 * with_it


@needs_glibc
@pytest.mark.parametrize(
    "environment",
    [
        {"MALLOC_MMAP_MAX_": "100"},
        {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=100"},
    ],
)
def test_settings_of_the_user_are_respected(environment: dict[str, str]) -> None:
    kept, _ = faults("keep", **environment)
    assert not kept


@needs_glibc
def test_tunables_of_something_else_are_no_settings_of_the_allocator() -> None:
    assert faults("keep", GLIBC_TUNABLES="glibc.pthread.rseq=1")[0]
