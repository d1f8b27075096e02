"""The processor of this machine, and its cores."""

from __future__ import annotations

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
