"""The tab "Attention" in TensorBoard, started as a user starts it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import time

import pytest
import tensorflow as tf
from tensorboard.compat.proto import summary_pb2

from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.visualization.summaries import write_attention, write_branches
from tests.support.attention_documents import make_document

pytestmark = pytest.mark.browser

STEPS = list(range(100, 1600, 100))
SECONDS = 30
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
    write_damaged(folder.parent / "zz_damaged")
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


def write_damaged(folder):
    """Write a run whose document is damaged."""
    plugin_data = summary_pb2.SummaryMetadata.PluginData(plugin_name="attention")
    metadata = summary_pb2.SummaryMetadata(
        plugin_data=plugin_data, data_class=summary_pb2.DATA_CLASS_BLOB_SEQUENCE
    )
    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default(step=1):
        tf.summary.write("attention/sentence_0", tf.constant([b"?"]), metadata=metadata)
    writer.close()


@pytest.fixture(scope="module")
def address(run_folder):
    """Start `tensorboard` and return its address."""
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
        lines = []
        for line in process.stderr:
            lines.append(line)
            match = re.search(r"http://127\.0\.0\.1:\d+/", line)
            if match:
                break
        else:
            pytest.fail("".join(lines))
        yield match[0]
        process.terminate()


def wait(look):
    """Return the first true result of a function that is called again and again."""
    end = time.monotonic() + SECONDS
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, "it did not appear"
        time.sleep(0.1)


class TensorBoardTab:
    """The tab "Attention" in a browser."""

    def __init__(self, driver, address):
        self.driver = driver
        driver.get(address)
        wait(self._named_tab).click()
        self.frame = wait(self._frame)
        driver.switch_to.frame(self.frame)
        wait(lambda: self.all("input[name=step]"))
        wait(lambda: self.all(".token"))

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def _named_tab(self):
        tabs = self.all("[role=tab]")
        return next(
            (t for t in tabs if t.get_attribute("textContent").strip() == "Attention"),
            None,
        )

    def _frame(self):
        return next(iter(self.all("iframe")), None)

    def step(self):
        (output,) = self.all("output")
        return int(output.text.replace(",", ""))

    def last_position(self):
        return int(self.all("input[name=step]")[0].get_attribute("max"))

    def move_to(self, position):
        slider = self.all("input[name=step]")[0]
        self.driver.execute_script(
            "arguments[0].value = arguments[1];"
            "for (const type of ['input', 'change'])"
            "  arguments[0].dispatchEvent(new Event(type, {bubbles: true}));",
            slider,
            position,
        )

    def lines(self, index):
        """Return the opacity of the lines that begin at a query under the pointer."""
        from selenium.webdriver import ActionChains

        token = self.all(".token[data-side=query]")[index]
        ActionChains(self.driver).move_to_element(token).perform()
        paths = wait(lambda: self.all("path.line"))
        return [float(path.get_attribute("stroke-opacity")) for path in paths]

    def text(self):
        return self.driver.find_element("css selector", "body").text


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


def test_pointing_at_a_word_draws_lines_as_dark_as_its_weights(tab):
    opacities = tab.lines(0)
    assert all(0 < opacity <= 1 for opacity in opacities)
    heads = 4
    # The weights of a query sum to one in each head, but for those too small to draw.
    assert sum(opacities) == pytest.approx(heads, abs=0.2)


def test_a_damaged_run_is_told_in_a_sentence(tab):
    from selenium.webdriver.support.select import Select

    choice = next(s for s in tab.all("select") if "zz_damaged" in s.text)
    Select(choice).select_by_visible_text("zz_damaged")
    sentence = (
        'The attention of "sentence_0" at step 1 is damaged: it is not compressed.'
    )
    wait(lambda: sentence in tab.text())
    # Chromium itself reports every answer with an error status.
    (message,) = messages_of(tab.driver)
    assert "status of 422" in message


def test_a_damaged_event_file_is_told_above_the_steps_before_it(tab):
    from selenium.webdriver.support.select import Select

    choice = next(s for s in tab.all("select") if "zz_cut" in s.text)
    Select(choice).select_by_visible_text("zz_cut/eval")
    sentence = 'An event file of the run "zz_cut/eval" is damaged after step 100'
    wait(lambda: sentence in tab.text())
    wait(lambda: "\N{MINUS SIGN}1.00 nats" in tab.text())


def test_branch_weights_are_beside_the_attention(tab):
    assert "Branch weights" in tab.text()


def test_the_button_of_tensorboard_loads_new_steps(tab, run_folder):
    new = STEPS[-1] + 100
    write_step(MetricsLog(run_folder), new)

    def reloaded():
        tab.driver.switch_to.default_content()
        tab.driver.find_element("css selector", ".reload-button").click()
        time.sleep(1)
        tab.driver.switch_to.frame(tab.frame)
        return tab.last_position() == len(STEPS)

    wait(reloaded)
    tab.move_to(len(STEPS))
    wait(lambda: tab.step() == new)
