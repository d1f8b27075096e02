"""The tab "Attention" in TensorBoard, started as a user starts it."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
import tensorflow as tf

from t2t_repro.features.attention_view.attention_summaries import (
    write_attention,
    write_branches,
)
from t2t_repro.training.metrics_log import MetricsLog
from tests.features.attention_view.test_plugin import BLOBS, write_tensor
from tests.support.attention_documents import make_document
from tests.support.browser import PageDriver
from tests.support.waiting import PAUSE, until

pytestmark = pytest.mark.browser

STEPS = list(range(100, 1600, 100))
# TensorBoard's page loads for seconds, on a busy machine for many.
wait = functools.partial(until, looks=3000)
# TensorBoard's own messages, and those of Chromium without a graphics card.
EXPECTED_MESSAGES = re.compile(
    r"Multiple instances of Three\.js|deprecated\. Please use app-layout"
    r"|software WebGL has been deprecated|GPU stall due to ReadPixels"
)


def write_step(log, step):
    for number in (0, 1):
        document = make_document(
            title=f"dev sentence {number + 1}",
            seed=step + number,
            sharpness=step / 100,
        )
        write_attention(log, step, number, document | {"score": -step / 100})
    layers = [
        {"name": f"encoder layer {layer}", "kappa": [0.3, 0.7], "alpha": [0.5, 0.5]}
        for layer in (1, 2)
    ]
    write_branches(log, step, layers)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs") / "weighted"
    folder.mkdir()
    log = MetricsLog(folder)
    for step in STEPS:
        log.scalars("train", step, {"loss": 1.0, "nll": 1.0})
        write_step(log, step)
    write_tensor(folder.parent / "zz_damaged", "sentence_0", tf.constant([b"?"]), BLOBS)
    write_cut(folder.parent / "zz_cut")
    return folder


def write_cut(folder):
    """Write a run whose event file is damaged after step 100."""
    folder.mkdir()
    log = MetricsLog(folder)
    write_step(log, 100)
    (path,) = (folder / "eval").glob("events*")
    size = path.stat().st_size
    write_step(log, 200)
    content = path.read_bytes()
    path.write_bytes(content[:size] + b"\0" + content[size + 1 :])


@pytest.fixture(scope="module")
def address(run_folder):
    found = importlib.metadata.entry_points(group="tensorboard_plugins")
    if "attention" not in found.names:
        pytest.skip(
            "the installed t2t_repro is older than its plugin: install it again"
        )
    command = [sys.executable, "-m", "tensorboard.main", "--host", "127.0.0.1"]
    command += ["--port", "0", "--logdir", str(run_folder.parent)]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            found = address_of(process)
            wait_for_steps(found, "weighted/eval", [STEPS, STEPS])
            wait_for_steps(found, "zz_cut/eval", [[100], [100]])
            wait_for_steps(found, "zz_damaged", [[1]])
            branches = functools.partial(answer, found, "branches", "weighted/eval")
            wait(lambda: len(branches() or []) == len(STEPS))
            yield found
        finally:
            process.terminate()


def address_of(process):
    lines = []
    for line in process.stderr:
        lines.append(line)
        match = re.search(r"http://127\.0\.0\.1:\d+/", line)
        if match:
            return match[0]
    return pytest.fail("".join(lines))


def answer(address, route, run):
    """Return what TensorBoard answers to the page, or None if it has no data."""
    query = urllib.parse.urlencode({"run": run})
    try:
        url = f"{address}data/plugin/attention/{route}?{query}"
        with urllib.request.urlopen(url) as response:
            return json.load(response)
    except urllib.error.HTTPError:
        return None


def wait_for_steps(address, run, expected):
    """Wait until TensorBoard has read these steps, listed by sentence.

    TensorBoard answers before that. The page does not ask again by itself, and
    TensorBoard shows no tab for a plugin without data.
    """

    def read():
        contents = answer(address, "list", run) or {"sentences": []}
        return [one["steps"] for one in contents["sentences"]] == expected

    wait(read)


class TensorBoardTab(PageDriver):
    def __init__(self, driver, address):
        super().__init__(driver)
        driver.get(address)
        wait(self._clicked)
        self.frame = wait(self._frame)
        driver.switch_to.frame(self.frame)
        wait(lambda: self.all("input[name=step]"))
        wait(lambda: self.all(".token"))

    def _clicked(self):
        """Click the tab, unless TensorBoard is still building its bar of tabs."""
        from selenium.common.exceptions import WebDriverException

        try:
            for tab in self.all("[role=tab]"):
                if tab.get_attribute("textContent").strip() == "Attention":
                    tab.click()
                    return True
        except WebDriverException:
            pass
        return False

    def _frame(self):
        return next(iter(self.all("iframe")), None)

    def step(self):
        (output,) = self.all("output")
        return int(output.text.replace(",", ""))

    def last_position(self):
        return int(self.all("input[name=step]")[0].get_attribute("max"))

    def move_to(self, position):
        slider = self.all("input[name=step]")[0]
        self.browser.execute_script(
            "arguments[0].value = arguments[1];"
            "for (const type of ['input', 'change'])"
            "  arguments[0].dispatchEvent(new Event(type, {bubbles: true}));",
            slider,
            position,
        )

    def choose_run(self, name):
        from selenium.webdriver.support.select import Select

        choice = next(s for s in self.all("select") if name in s.text)
        Select(choice).select_by_visible_text(name)

    def press_reload(self):
        self.browser.switch_to.default_content()
        self.click(".reload-button")
        self.browser.switch_to.frame(self.frame)

    def choose_theme(self, name):
        self.browser.switch_to.default_content()
        self.click("app-header-dark-mode-toggle button")
        wait(lambda: self.all("[mat-menu-item]"))
        (item,) = [i for i in self.all("[mat-menu-item]") if i.text.strip() == name]
        item.click()
        wait(lambda: not self.all("[mat-menu-item]"))
        self.browser.switch_to.frame(self.frame)

    def background(self):
        return self.browser.execute_script(
            "const root = document.querySelector('.t2t-attention');"
            "return getComputedStyle(root).backgroundColor"
        )


@pytest.fixture
def tab(chromium, address):
    chromium.switch_to.default_content()
    chromium.get("about:blank")
    chromium.get_log("browser")
    yield TensorBoardTab(chromium, address)
    chromium.switch_to.default_content()
    assert messages_of(chromium) == []


def messages_of(driver):
    """Return the new messages in the console that are not TensorBoard's own."""
    messages = [entry["message"] for entry in driver.get_log("browser")]
    return [text for text in messages if not EXPECTED_MESSAGES.search(text)]


def test_the_tab_shows_the_last_step_of_the_run(tab):
    assert tab.step() == STEPS[-1]
    assert "dev sentence 1" in tab.text()
    assert "weighted/eval" in tab.text()


def test_the_slider_has_every_step_and_changes_the_sentence(tab):
    assert tab.last_position() == len(STEPS) - 1
    tab.move_to(0)
    wait(lambda: tab.step() == STEPS[0])
    # The score in the document of a step is -step / 100.
    wait(lambda: f"\N{MINUS SIGN}{STEPS[0] / 100:.2f}" in tab.text())


def test_a_damaged_run_is_told_in_a_sentence(tab):
    tab.choose_run("zz_damaged")
    sentence = (
        'The attention of "sentence_0" at step 1 is damaged: it is not compressed.'
    )
    wait(lambda: sentence in tab.text())
    # Chromium itself reports every answer with an error status.
    messages = wait(lambda: messages_of(tab.browser))
    assert all("status of 422" in message for message in messages)


def test_a_damaged_event_file_is_told_above_the_steps_before_it(tab):
    tab.choose_run("zz_cut/eval")
    sentence = 'An event file of the run "zz_cut/eval" is damaged after step 100'
    wait(lambda: sentence in tab.text())
    wait(lambda: "\N{MINUS SIGN}1.00 nats" in tab.text())


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_tab_follows_tensorboards_own_switch_between_light_and_dark(tab, system):
    features = [{"name": "prefers-color-scheme", "value": system}]
    tab.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    pages = {"Dark": "rgb(14, 16, 20)", "Light": "rgb(244, 245, 247)"}
    for choice, page in pages.items():
        tab.choose_theme(choice)
        wait(lambda page=page: tab.background() == page)


def test_branch_weights_are_beside_the_attention(tab):
    # They are a request of their own.
    wait(lambda: "Branch weights" in tab.text())


def test_the_button_of_tensorboard_loads_new_steps(tab, run_folder, address):
    new = STEPS[-1] + 100
    write_step(MetricsLog(run_folder), new)

    wait_for_steps(address, "weighted/eval", [[*STEPS, new]] * 2)

    def reloaded():
        # TensorBoard ignores its button while it is loading.
        tab.press_reload()
        return any(
            tab.last_position() == len(STEPS) or time.sleep(PAUSE) for _ in range(50)
        )

    wait(reloaded)
    tab.move_to(len(STEPS))
    wait(lambda: tab.step() == new)
