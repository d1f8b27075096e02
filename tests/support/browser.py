"""A headless browser for the tests marked `browser`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until

CHROMIUM = Path("/usr/bin/chromium")
CHROMEDRIVER = Path("/usr/bin/chromedriver")
PATIENCE = 600  # seconds
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Return a driver of headless Chromium, or skip the test."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is missing")
    for program in (CHROMIUM, CHROMEDRIVER):
        if not program.exists():
            pytest.skip(f"no browser: {program} is missing")
    options = selenium.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = selenium.ChromeService(str(CHROMEDRIVER))
    driver = selenium.Chrome(options=options, service=service)
    # A busy machine may need minutes for what usually takes a second.
    driver.command_executor.client_config.timeout = PATIENCE
    driver.set_page_load_timeout(PATIENCE)
    driver.set_script_timeout(PATIENCE)
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """Return a browser; fail if the page writes anything to the console."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    # The last test's pointer would hover whatever the next page shows at its place.
    corner = {"type": "mouseMoved", "x": 0, "y": 0}
    chromium.execute_cdp_cmd("Input.dispatchMouseEvent", corner)
    yield chromium
    assert chromium.get_log("browser") == []


@pytest.fixture
def set_width(browser: Any) -> Iterator[Callable[[int], None]]:
    """Give the page a width; restore the window's width afterwards."""

    def wait_for(width: int) -> None:
        until(lambda: browser.execute_script("return innerWidth") == width)

    def set_to(width: int) -> None:
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        wait_for(width)

    before = browser.execute_script("return innerWidth")
    yield set_to
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    wait_for(before)


class PageDriver:
    """A page as a user sees it."""

    def __init__(self, browser: Any):
        self.browser = browser

    def all(self, css: str) -> list[Any]:
        return self.browser.find_elements("css selector", css)

    def one(self, css: str) -> Any:
        return self.browser.find_element("css selector", css)

    def text(self, css: str = "body") -> str:
        return self.one(css).get_property("textContent")

    def click(self, css: str) -> None:
        self.one(css).click()

    def actions(self) -> Any:
        from selenium.webdriver.common.action_chains import ActionChains

        return ActionChains(self.browser, duration=0)

    def press(self, *keys: str) -> None:
        self.actions().send_keys(*keys).perform()
