"""Fixtures of the tests of this feature."""

from tests.support.shared_searches import shared_searches

__all__ = ["shared_searches"]
