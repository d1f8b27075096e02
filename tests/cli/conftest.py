"""Fixtures of the commands' tests."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def quick_commands(shared_translators, without_xla):
    """Compile nothing, and trace each search once."""


@pytest.fixture
def own_run(trained, tmp_path):
    return Path(shutil.copytree(trained.output_dir, tmp_path / "run"))
