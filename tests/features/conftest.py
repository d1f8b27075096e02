"""Fixtures that the tests of several features share."""

from tests.support.browser import browser, chromium, set_width
from tests.support.shared_searches import shared_searches

__all__ = ["browser", "chromium", "set_width", "shared_searches"]
