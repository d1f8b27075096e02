"""A headless browser for the tests marked `browser`."""

from tests.support.browser import browser, chromium, set_width

__all__ = ["browser", "chromium", "set_width"]
