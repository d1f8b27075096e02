"""Fixtures of the commands' tests."""

import pytest


@pytest.fixture(autouse=True)
def quick_commands(shared_translators, without_xla):
    """Compile nothing, and trace each search once."""
