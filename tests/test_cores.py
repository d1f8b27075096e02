"""Tests of `cores`."""

from __future__ import annotations

import os

import pytest

from t2t_repro.cores import available_cores


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
