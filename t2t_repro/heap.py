"""The memory that this process gets from the C library."""

from __future__ import annotations

import ctypes
import os

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
    if os.name != "posix" or _chosen_by_the_user():
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    accepted = mallopt(_M_MMAP_MAX, 0), mallopt(_M_TRIM_THRESHOLD, _NEVER_TRIM)
    return all(accepted)


def _chosen_by_the_user() -> bool:
    """Return whether the environment has settings of glibc's allocator."""
    return "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "") or any(
        name.startswith("MALLOC_") for name in os.environ
    )
