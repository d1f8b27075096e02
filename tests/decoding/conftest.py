"""Fixtures of the tests of searches and translations."""

from tests.support.shared_searches import shared_searches

__all__ = ["shared_searches"]
