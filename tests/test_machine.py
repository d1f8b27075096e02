"""Cores, instructions and freed memory of the machine."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from t2t_repro import machine
from t2t_repro.machine import (
    available_cores,
    multiplies_bfloat16,
    processor_name,
)


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system binds no process to cores"
)
def test_cores_that_the_process_may_not_use_do_not_count() -> None:
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cores)})
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, cores)
    assert available_cores() == len(cores)


@pytest.fixture
def cpuinfo(monkeypatch, tmp_path):
    """Return a function that makes the file in which Linux describes the cores."""
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(machine, "CPUINFO", path)
    return path.write_text


CPUINFO = """processor\t: 0
vendor_id\t: {vendor}
model name\t: Some Processor: 2 GHz
flags\t\t: fpu {flags} sse
bugs\t\t:

processor\t: 1
model name\t: Another Processor
flags\t\t: fpu sse
"""


def test_the_name_is_that_of_the_first_core(cpuinfo):
    cpuinfo(CPUINFO)
    assert processor_name() == "Some Processor: 2 GHz"


def test_python_names_the_processor_where_linux_does_not(cpuinfo, monkeypatch):
    for text in (None, "processor: 0\n"):
        if text:
            cpuinfo(text)
        monkeypatch.setattr(machine.platform, "processor", lambda: "x")
        assert processor_name() == "x"
        monkeypatch.setattr(machine.platform, "processor", lambda: "")
        monkeypatch.setattr(machine.platform, "machine", lambda: "y")
        assert processor_name() == "y"


@pytest.mark.parametrize(
    ("vendor", "flags", "answer"),
    [
        ("GenuineIntel", "amx_bf16 amx_tile avx512_bf16", True),
        ("GenuineIntel", "amx_tile amx_int8", False),
        ("GenuineIntel", "avx512_bf16", False),
        ("GenuineIntel", "amx_bf16x", False),
        ("AuthenticAMD", "avx512_bf16", True),
        ("AuthenticAMD", "avx512f avx512_bf16x", False),
    ],
)
def test_amx_and_the_instructions_of_amd_multiply_matrices_of_bfloat16(
    cpuinfo, vendor, flags, answer
):
    cpuinfo(CPUINFO.format(vendor=vendor, flags=flags))
    assert multiplies_bfloat16() is answer


def test_a_system_that_does_not_describe_its_cores_multiplies_no_bfloat16(cpuinfo):
    assert not multiplies_bfloat16()
    cpuinfo("processor: 0\n")
    assert not multiplies_bfloat16()


# Allocates and frees 256 MB ten times, touching every page, and prints the page faults
# after the first time.
FAULTS = """
import ctypes, resource, sys
from t2t_repro.machine import keep_freed_memory
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
    ("name", "value", "is_kept"),
    [
        ("MALLOC_MMAP_MAX_", "100", False),
        ("GLIBC_TUNABLES", "glibc.malloc.mmap_max=100", False),
        ("GLIBC_TUNABLES", "glibc.pthread.rseq=1", True),  # of something else
    ],
)
def test_settings_of_the_user_are_respected(name, value, is_kept) -> None:
    assert faults("keep", **{name: value})[0] == is_kept
