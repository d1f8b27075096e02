"""Every benchmark that takes flags starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = [
    path.relative_to(REPOSITORY).with_suffix("")
    for path in sorted((REPOSITORY / "benchmarks").rglob("*.py"))
    if "def add_flags(" in path.read_text()
    or "(description=__doc__" in path.read_text()
]


def imports_a_sibling(path: Path) -> bool:
    """Return whether a program runs as a file, beside the modules that it imports."""
    names = {sibling.stem for sibling in (REPOSITORY / path).parent.glob("*.py")}
    lines = (REPOSITORY / path).with_suffix(".py").read_text().splitlines()
    return any(line.startswith(f"from {name} ") for name in names for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=str)
def test_it_tells_its_flags(path):
    command = ["-m", ".".join(path.parts)]
    if imports_a_sibling(path):
        command = [str(REPOSITORY / path) + ".py"]
    ended = subprocess.run(
        [sys.executable, *command, "--help"],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("usage: ")
