"""The machine: its processor, its cores, and the memory of the C library."""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")  # on Linux


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_name() -> str:
    """Return the name of the processor, e.g. "AMD EPYC"."""
    return _first_in_cpuinfo("model name") or platform.processor() or platform.machine()


def multiplies_bfloat16() -> bool:
    """Return whether products of bfloat16 are fast: with AMX, or AVX-512 BF16 of AMD.

    Intel's AVX-512 BF16 without AMX does not count, because what XLA compiles is faster
    there (docs/training.md). Only Linux reports the instructions; elsewhere, the
    answer is no.
    """
    flags = _first_in_cpuinfo("flags").split()
    on_amd = _first_in_cpuinfo("vendor_id") == "AuthenticAMD"
    return "amx_bf16" in flags or (on_amd and "avx512_bf16" in flags)


def _first_in_cpuinfo(wanted: str) -> str:
    """Return the value of a key for the first core, or "" if there is none."""
    if CPUINFO.exists():
        for line in CPUINFO.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == wanted:
                return value.strip()
    return ""


# Parameters of mallopt, from glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_NEVER_TRIM = -1


def keep_freed_memory() -> bool:
    """Keep freed memory for the next allocation, instead of returning it to the system.

    By default, glibc asks the system for every block of 32 MB or more, and returns it
    when it is freed. An update that XLA compiled for a CPU allocates some hundred
    megabytes of temporary arrays, so the kernel clears new pages for every update
    (docs/performance.md has measurements). With this, memory that was used once stays
    with the process. Call it before the first large allocation.

    Settings of the user in the environment, `MALLOC_...` or `GLIBC_TUNABLES`, are
    respected.

    Returns:
        Whether the C library accepted the settings; False for other C libraries than
        glibc, and where the user has chosen settings.
    """
    if os.name != "posix" or _is_configured_by_user():
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    accepted = mallopt(_M_MMAP_MAX, 0), mallopt(_M_TRIM_THRESHOLD, _NEVER_TRIM)
    return all(accepted)


def _is_configured_by_user() -> bool:
    """Return whether the environment has settings of glibc's allocator."""
    return "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "") or any(
        name.startswith("MALLOC_") for name in os.environ
    )
