"""Searches that the tests of a module share."""

from tests.support.shared_searches import shared_searches

__all__ = ["shared_searches"]
