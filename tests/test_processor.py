"""Tests of `processor`."""

from __future__ import annotations

import os

import pytest

from t2t_repro import processor
from t2t_repro.processor import (
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
    monkeypatch.setattr(processor, "CPUINFO", path)
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
        monkeypatch.setattr(processor.platform, "processor", lambda: "x")
        assert processor_name() == "x"
        monkeypatch.setattr(processor.platform, "processor", lambda: "")
        monkeypatch.setattr(processor.platform, "machine", lambda: "y")
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
