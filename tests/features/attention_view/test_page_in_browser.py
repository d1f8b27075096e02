"""The attention view in a real browser; expected values come from NumPy."""

from __future__ import annotations

import base64
import copy
from typing import Any

import numpy as np
import pytest

from t2t_repro.features.attention_view.sentence_attention import html_page
from tests.support.attention_documents import (
    SOURCE,
    TARGET,
    Document,
    make_document,
    words_of,
)
from tests.support.browser import PageDriver
from tests.support.waiting import until

pytestmark = pytest.mark.browser

MEMORY = 2
KAPPA, ALPHA = "\N{GREEK SMALL LETTER KAPPA}", "\N{GREEK SMALL LETTER ALPHA}"
# float16 has 11 bits; the page rounds to three decimals.
TOLERANCE = 1.1e-3

# A source with two runs, six steps and branch weights, from documents given by step.
MOUNT = """
[globalThis.steps, globalThis.documents, globalThis.branches] = arguments;
const root = document.getElementById("attention");
root.replaceChildren();
globalThis.view = T2TAttention.mount(root, {
  runs: async () => ["weighted", "plain"],
  list: async (run) => ({
    sentences: [0, 1].map((id) => ({id, title: "sentence " + id, steps})),
    branches: run === "weighted" && branches.length > 0,
  }),
  load: async (run, id, step) => documents[step],
  branches: async () => branches,
});
"""

# A source that lists its only run at once, and then each time that `answers` is called.
SLOW_MOUNT = """
const [documents] = arguments;
const root = document.getElementById("attention");
root.replaceChildren();
globalThis.answers = [];
const contents = {sentences: [{id: 0, title: "a", steps: [10, 20]}], branches: false};
let first = true;
globalThis.view = T2TAttention.mount(root, {
  runs: async () => ["run"],
  list: () => new Promise((answer) => {
    if (first) answer(contents);
    else answers.push(() => answer(contents));
    first = false;
  }),
  load: async (run, id, step) => documents[step],
});
"""
MOVE_SLIDER = """
const slider = document.querySelector("[name=step]");
slider.value = arguments[0];
slider.dispatchEvent(new Event("input"));
"""


def weights_of(document: Document, index: int = MEMORY) -> np.ndarray:
    """Return the weights as float64 [layer, head, query, key]."""
    raw = document["maps"][index]
    sequences = document["sequences"]
    shape = [raw["layers"], raw["heads"]]
    shape += [len(sequences[raw[side]]["tokens"]) for side in ("queries", "keys")]
    values = np.frombuffer(base64.b64decode(raw["weights"]), "<f2")
    return values.reshape(shape).astype(np.float64)


def merged(weights: np.ndarray, queries: list[str], keys: list[str]) -> np.ndarray:
    """Return the weights between words: mean over queries, sum over keys."""
    rows = [weights[..., a:b, :].mean(-2) for a, b in words_of(queries)]
    weights = np.stack(rows, -2)
    return np.stack([weights[..., a:b].sum(-1) for a, b in words_of(keys)], -1)


class Page(PageDriver):
    def __init__(self, browser: Any, folder: Any):
        super().__init__(browser)
        self.file = folder / "attention.html"

    def open(self, *documents: Document) -> Page:
        self.file.write_text(html_page(documents, "Attention"), encoding="utf-8")
        self.browser.get(self.file.as_uri())
        return self.wait(".lines .token")

    def mount(self, steps, documents, branches=()) -> Page:
        self.browser.execute_script(
            MOUNT, steps, {str(s): d for s, d in documents.items()}, list(branches)
        )
        return self.wait(".lines .token")

    def wait(self, css: str) -> Page:
        until(lambda: self.all(css))
        return self

    def wait_for_step(self, step: str) -> None:
        # The number of the step changes before its weights are loaded.
        until(lambda: self.text("output") == step and not self.all("[aria-busy]"))

    def tab(self, view: str) -> None:
        self.click(f"[role=tab][data-view={view}]")

    def token(self, side: str, index: int) -> str:
        return f"[data-side={side}][data-index='{index}']"

    def hover(self, css: str) -> None:
        node = self.one(css)
        self.actions().move_to_element(node).perform()
        self.wait_for_pointer(node)

    def wait_for_pointer(self, node: Any) -> None:
        # The style `:hover` and the event belong to the same task of the browser.
        hovered = "return arguments[0].matches(':hover')"
        until(lambda: self.browser.execute_script(hovered, node))

    def double_click(self, css: str) -> None:
        """Click twice, however much time passes in between."""
        center = (
            "const box = arguments[0].getBoundingClientRect();"
            "return {x: box.x + box.width / 2, y: box.y + box.height / 2}"
        )
        place = self.browser.execute_script(center, self.one(css))
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                event = {"type": kind, "button": "left", "clickCount": count, **place}
                self.browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)

    def choose(self, group: str, index: int) -> None:
        self.click(f".{group} label:nth-child({index + 1})")

    def subwords(self) -> None:
        self.choose("words", 1)

    def lines(self) -> dict[tuple[int, int], float]:
        """Return the opacity of the lines drawn, by other token and head."""
        found = self.browser.execute_script(
            "return [...document.querySelectorAll('path.line')].map((line) => ["
            "line.dataset.other, line.dataset.head,"
            "line.getAttribute('stroke-opacity')])"
        )
        return {(int(other), int(head)): float(share) for other, head, share in found}

    def table(self) -> tuple[list[str], np.ndarray]:
        headers = [h.get_property("textContent") for h in self.all("thead th")]
        rows = self.browser.execute_script(
            "return [...document.querySelectorAll('tbody tr')].map((row) =>"
            "[...row.cells].map((cell) => cell.textContent.replace('Head ', '')))"
        )
        return headers, np.array(rows, float)

    def focused(self, script: str = "node.textContent") -> Any:
        return self.browser.execute_script(
            f"const node = document.activeElement; return {script}"
        )


@pytest.fixture
def page(browser, tmp_path) -> Page:
    return Page(browser, tmp_path)


def assert_lines(page: Page, expected: np.ndarray, heads: list[int]) -> None:
    """Compare the lines drawn with weights [head, other token]."""
    lines = page.lines()
    for head in range(len(expected)):
        for other, weight in enumerate(expected[head]):
            drawn = lines.get((other, head), 0.0)
            wanted = weight if head in heads else 0.0
            # Weights below 0.005 have no line.
            tolerance = TOLERANCE if drawn else 0.005
            assert drawn == pytest.approx(wanted, abs=tolerance)
    assert max(lines.values()) > 0.1


def test_hovering_a_query_draws_lines_of_the_weights(page):
    document = make_document()
    page.open(document).subwords()
    assert page.lines() == {}
    page.hover(page.token("query", 3))
    assert_lines(page, weights_of(document)[-1, :, 3], [0, 1, 2, 3])
    assert len(page.all("rect.bar")) == 4 * len(SOURCE)


def test_hovering_a_key_draws_who_attends_to_it(page):
    document = make_document()
    page.open(document).subwords()
    page.hover(page.token("key", 4))
    assert_lines(page, weights_of(document)[-1, :, :, 4], [0, 1, 2, 3])
    assert "is attended to by" in page.text(".ranking h3")


def test_every_float16_is_decoded_exactly(page):
    page.open(make_document())
    decoded = page.browser.execute_script(
        "return [...HALVES].map((value) => Number.isFinite(value) ? value : null)"
    )
    expected = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float64)
    expected = [value if np.isfinite(value) else None for value in expected.tolist()]
    assert decoded == expected


def test_words_merge_by_mean_over_queries_and_sum_over_keys(page):
    document = make_document()
    page.open(document)
    page.hover(page.token("query", 3))
    expected = merged(weights_of(document), TARGET, SOURCE)
    assert expected.shape[-2:] == (8, 9)
    assert page.text(page.token("query", 3)) == "runs"
    assert page.text(page.token("key", 6)) == "Hause"
    assert_lines(page, expected[-1, :, 3], [0, 1, 2, 3])


def test_faint_lines_of_all_tokens_show_until_one_is_chosen(page):
    def drawn() -> int:
        return page.browser.execute_script(
            "const { width, height } = document.querySelector('.glass canvas');"
            "const copy = new OffscreenCanvas(width, height).getContext('2d');"
            "copy.drawImage(document.querySelector('.glass canvas'), 0, 0);"
            "return copy.getImageData(0, 0, width, height)"
            ".data.filter((value, i) => i % 4 === 3 && value > 0).length"
        )

    page.open(make_document())
    assert drawn() > 1000
    page.hover(page.token("query", 0))
    assert drawn() == 0
    page.click(".none")
    page.hover("h1")
    assert drawn() == 0


def test_a_document_without_words_shows_tokens(page):
    document = make_document()
    for sequence in document["sequences"].values():
        sequence["words"] = [[0, 2], [3, 4]]  # does not cover the tokens
    page.open(document)
    assert not page.one(".words").is_displayed()
    assert len(page.all(".query .token")) == len(TARGET)


def test_toggles_hide_heads_and_show_them_again(page):
    document = make_document()
    page.open(document).subwords()
    expected = weights_of(document)[-1, :, 0]
    page.click("[data-head='1'].chip")
    page.hover(page.token("query", 0))
    assert_lines(page, expected, [0, 2, 3])
    assert page.one("[data-head='1'].chip").get_attribute("aria-pressed") == "false"
    page.click(".none")
    page.hover(page.token("query", 0))
    assert page.lines() == {}
    page.click(".all")
    page.hover(page.token("query", 0))
    assert_lines(page, expected, [0, 1, 2, 3])


def test_a_double_click_or_shift_shows_one_head_and_another_all_heads(page):
    page.open(make_document())

    def pressed() -> list[str]:
        return [c.text for c in page.all(".chip[aria-pressed=true]")]

    page.double_click("[data-head='2'].chip")
    assert pressed() == ["3"]
    page.double_click("[data-head='2'].chip")
    assert pressed() == ["1", "2", "3", "4"]
    shift, chip = "\ue008", page.one("[data-head='1'].chip")
    page.actions().key_down(shift).click(chip).key_up(shift).perform()
    assert pressed() == ["2"]


def test_a_pinned_token_keeps_its_lines(page):
    page.open(make_document())
    page.click(page.token("query", 2))
    pinned = page.lines()
    page.hover(page.token("query", 5))
    assert page.lines() == pinned
    page.click(page.token("query", 2))
    page.hover("h1")
    assert page.lines() == {}


def training(steps: list[int]) -> dict[int, Document]:
    return {step: make_document(seed=step, sharpness=step / 10) for step in steps}


def test_the_slider_changes_the_step_and_keeps_what_is_chosen(page, browser):
    steps = [10, 20, 40, 80]
    documents = training(steps)
    page.open(make_document()).mount(steps, documents)
    page.subwords()
    page.choose("layer", 1)
    page.click("[data-head='0'].chip")
    page.click(page.token("query", 1))
    assert page.text("output") == "80"
    assert_lines(page, weights_of(documents[80])[1, :, 1], [1, 2, 3])
    browser.execute_script("document.querySelector('[name=step]').focus()")
    page.press("\ue012", "\ue012")  # left arrow
    page.wait_for_step("20")
    assert_lines(page, weights_of(documents[20])[1, :, 1], [1, 2, 3])
    assert page.focused("node.name") == "step"
    assert page.one("[name=step]").get_attribute("aria-valuetext") == "20"


def test_the_training_plays_step_by_step(page):
    steps = [10, 20]
    page.open(make_document()).mount(steps, training(steps))
    page.browser.execute_script(
        "const output = document.querySelector('output');"
        "globalThis.seen = [output.textContent];"
        "new MutationObserver(() => {"
        "  if (seen.at(-1) !== output.textContent) seen.push(output.textContent);"
        "}).observe(output, {childList: true})"
    )
    page.click(".play")
    until(lambda: page.text(".play") == "▶")
    assert page.browser.execute_script("return seen") == ["20", "10", "20"]


def entropy_of(weights: np.ndarray) -> np.ndarray:
    logs = np.log(np.where(weights > 0, weights, 1))
    return -(weights * logs).sum(-1).mean(-1)


def test_the_table_has_the_figures_that_numpy_computes(page):
    document = make_document()
    page.open(document)
    page.tab("table")
    weights = merged(weights_of(document), TARGET, SOURCE)
    queries, keys = weights.shape[-2:]
    centre_q = (np.arange(queries)[:, None] + 0.5) / queries
    centre_k = (np.arange(keys)[None] + 0.5) / keys
    apart = abs(centre_q - centre_k)
    expected = {
        "Aligns words": weights.max(-2).sum(-1) / min(queries, keys),
        "Entropy (nats)": entropy_of(weights),
        "Strongest key": weights.max(-1).mean(-1),
        "Distance (share of length)": (weights * apart).sum(-1).mean(-1),
    }
    headers, rows = page.table()
    assert headers == ["Layer", "Head", *expected]
    assert len(rows) == 12
    for layer, head, *figures in rows:
        place = int(layer) - 1, int(head) - 1
        assert figures == pytest.approx([e[place] for e in expected.values()], abs=2e-3)
    page.subwords()
    page.choose("kind", 1)
    weights = weights_of(document, 1)
    positions = np.arange(weights.shape[-1])
    apart = abs(positions[:, None] - positions[None])
    distances = (weights * apart).sum(-1).mean(-1)
    headers, rows = page.table()
    assert headers[-1] == "Distance (positions)"
    for layer, head, *figures in rows:
        place = int(layer) - 1, int(head) - 1
        assert figures[-1] == pytest.approx(distances[place], abs=0.01)


def test_the_table_sorts_by_its_headers(page):
    document = make_document()
    page.open(document)
    page.tab("table")
    headers, rows = page.table()
    assert (np.diff(rows[:, 2]) <= 0).all()
    column = headers.index("Entropy (nats)")
    header = f"th:nth-child({column + 1})"
    for order, sign in (("ascending", 1), ("descending", -1)):
        page.click(f"{header} button")
        assert page.one(header).get_attribute("aria-sort") == order
        assert (sign * np.diff(page.table()[1][:, column]) >= 0).all()


def test_the_head_that_aligns_words_is_named_and_opens(page):
    page.open(make_document(align_head=(1, 2)))
    assert "layer 2, head 3" in page.text(".insight")
    page.click(".insight")
    assert [c.text for c in page.all(".chip[aria-pressed=true]")] == ["3"]
    assert page.one(".layer input:checked").get_property("value") == "1"
    # The words of the reordered sentence: "home" is aligned with "Hause".
    page.hover(page.token("query", 4))
    strongest = max(page.lines().items(), key=lambda item: item[1])
    assert page.text(page.token("key", strongest[0][0])) == "Hause"


def test_a_small_picture_opens_its_heat_map(page):
    document = make_document()
    page.open(document).subwords()
    page.tab("grid")
    assert len(page.all(".small")) == 12
    page.click(".small[data-layer='0'][data-head='1']")
    assert page.text("aside h3") == "Layer 1, head 2"
    weights = weights_of(document)[0, 1]
    pixels = page.browser.execute_script(
        "const c = document.querySelector('.plot canvas');"
        "return [c.width, c.height, ...c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data]"
    )
    assert pixels[:2] == [len(SOURCE), len(TARGET)]
    red = np.array(pixels[2::4], float).reshape(weights.shape)
    paper, ink = 0xFF, 0xD8
    assert red == pytest.approx(paper + (ink - paper) * weights**0.6, abs=1)


def test_the_heat_map_reads_out_tokens_and_weight(page):
    document = make_document()
    page.open(document).subwords()
    page.tab("heat")
    page.click("[data-head='3'].chip")
    weights = weights_of(document)[-1, 3]
    cell = page.browser.execute_script(
        "return document.querySelector('.outline').parentNode.clientWidth"
    ) / len(SOURCE)
    plot = page.one(".plot")
    x = (6.5 - len(SOURCE) / 2) * cell
    y = (2.5 - len(TARGET) / 2) * cell
    page.actions().move_to_element_with_offset(plot, round(x), round(y)).perform()
    page.wait_for_pointer(plot)
    assert page.text(".readout") == f"▁dog attends to ▁Haus{weights[2, 6]:.3f}"
    assert page.text(".top .tick.active") == "▁Haus"
    assert page.text(".left .tick.active") == "▁dog"


HOSTILE = "<script>globalThis.broken = 1</script><img src=x onerror=alert(1)>\"'&amp;"


def test_hostile_long_and_right_to_left_text_is_harmless(page):
    source = [HOSTILE, "▁" + "x" * 10_000, "▁שלום", "</s>"]
    document = make_document(source=source, aligned=[0] * 10, title=HOSTILE)
    document["sequences"]["source"]["text"] = HOSTILE * 200
    document["sequences"]["target"]["text"] = HOSTILE
    page.open(document, document)
    for view in ("lines", "heat", "grid", "table"):
        page.tab(view)
    page.tab("lines")
    assert page.browser.execute_script("return globalThis.broken") is None
    assert not page.all("#attention :is(script, img)")
    labels = page.all(".key .token bdi")
    assert labels[0].get_attribute("title") == HOSTILE
    assert labels[1].get_attribute("title") == "x" * 10_000
    assert len(labels[1].text) < 100
    assert {label.get_attribute("dir") for label in labels} == {"auto"}
    width = "return document.documentElement.scrollWidth - innerWidth"
    assert page.browser.execute_script(width) <= 0


def test_texts_and_score_are_shown(page):
    page.open(make_document())
    assert page.one(".texts").text.split("\n") == [
        *("Source", "Der kleine Hund läuft schnell nach Hause ."),
        *("Target", "The little dog runs home quickly ."),
        *("Score", "\N{MINUS SIGN}3.21 nats (log-probability of the target)"),
    ]


def test_everything_is_reached_by_keyboard(page):
    page.open(make_document(), make_document(title="second"))
    tab, left, right, down, escape = "\ue004", "\ue012", "\ue014", "\ue015", "\ue00c"
    stops = []
    for _ in range(40):
        page.press(tab)
        stops.append(page.focused("node.name || node.dataset.view || node.className"))
        if stops[-1].startswith("token"):
            break
    expected = ["sentence", "plain theme", "-kind", "-layer", "-words", "lines"]
    expected += ["insight", *["chip"] * 4, "plain all", "plain none", "token active"]
    assert len(stops) == len(expected)
    assert all(stop.endswith(name) for stop, name in zip(stops, expected, strict=True))
    assert page.lines()
    page.press(down, down, right)
    assert page.focused() == "Hund"
    assert "Hund is attended to by" in page.text("[role=status]")
    page.press(" ")
    assert page.text(".token[aria-pressed=true]") == "Hund"
    page.press(escape)
    assert not page.all(".token[aria-pressed=true]")
    page.one("[role=tab][aria-selected=true]").send_keys(right, right)
    page.press(tab, tab)
    assert page.focused("node.ariaLabel").startswith("Layer 3, head 1")
    page.press(right, "\ue013", "\ue007")  # up arrow, Enter
    assert page.text("aside h3") == "Layer 2, head 2"
    assert page.focused("node.dataset.view") == "heat"
    page.one(".plot").send_keys(right, down)
    assert page.text(".readout").startswith("little attends to kleine")
    page.one("[role=tab][aria-selected=true]").send_keys(left)
    assert page.focused("node.dataset.view") == "lines"


def test_light_and_dark_follow_the_system_and_the_button(page, browser):
    def background() -> str:
        return page.one("#attention").value_of_css_property("background-color")

    page.open(make_document())
    light = background()
    media = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    # The page hears of the change after the style has changed.
    until(lambda: page.text(".theme") == "☀ Light")
    assert background() != light
    page.click(".theme")
    assert background() == light
    page.click(".theme")
    assert background() != light


def test_branch_weights_are_drawn_beside_the_rest(page):
    steps = [10, 20]
    kappas = {  # None of a layer in which it is merged with alpha.
        "encoder layer 1": {"kappa": [0.25, 0.75]},
        "decoder layer 1": {},
    }
    branches = [
        {
            "step": step,
            "layers": [
                {"name": name, **kappa, "alpha": [step / 20, 0.1]}
                for name, kappa in kappas.items()
            ],
        }
        for step in steps
    ]
    page.open(make_document()).mount(steps, training(steps), branches)
    page.wait(".chart")
    charts = [c.get_attribute("aria-label") for c in page.all(".chart")]
    assert charts == [
        f"{KAPPA} of encoder layer 1 at step 20: 0.250, 0.750",
        f"{ALPHA} of encoder layer 1 at step 20: 1.000, 0.100",
        f"{ALPHA} of decoder layer 1 at step 20: 1.000, 0.100",
    ]
    # y = 53 at 0 and 5 at the largest value
    line = page.all(".chart")[1].find_element("css selector", "polyline")
    assert line.get_attribute("points") == "3.0,29.0 147.0,5.0"
    page.browser.execute_script(
        "const run = document.querySelector('[name=run]'); run.value = 1;"
        "run.dispatchEvent(new Event('change'))"
    )
    until(lambda: not page.all(".chart"))


ONE_STEP = (
    "runs: async () => ['b'],"
    "list: async () => ({sentences: [{id: 0, title: 'a', steps: [1]}]}), load: async "
)


@pytest.mark.parametrize(
    ("methods", "sentence"),
    [
        ("runs: async () => []", "There is no attention data yet."),
        ("runs: async () => { throw new Error('e.1 is bad') }", "e.1 is bad."),
        (
            "runs: async () => ['base'], list: async () => ({sentences: []})",
            "Run “base” has no attention data.",
        ),
        (f"{ONE_STEP} () => {{ throw new Error('Gone.') }}", "Gone."),
        (
            f"{ONE_STEP} () => ({{version: 2}})",
            "The attention data has version 2; expected 1.",
        ),
    ],
)
def test_errors_of_the_source_are_one_sentence(page, methods, sentence):
    page.open(make_document())
    page.browser.execute_script(
        f"T2TAttention.mount(document.getElementById('attention'), {{{methods}}})"
    )
    until(lambda: page.text("[role=alert]") == sentence)
    assert not page.one(".views").is_displayed()


def test_weights_of_the_wrong_size_are_one_sentence(page):
    document = copy.deepcopy(make_document())
    document["maps"][MEMORY]["layers"] = 2
    page.file.write_text(html_page([document], "T"), encoding="utf-8")
    page.browser.get(page.file.as_uri())
    until(lambda: "have 2400 bytes; expected 1600" in page.text("[role=alert]"))


def test_the_menu_of_sentences_has_their_numbers_and_first_words(page):
    words = "<b>Der</b> kleine …"
    documents = [
        make_document(title="") | {"first_words": words},
        make_document(title="") | {"first_words": ""},
        make_document(title="dev sentence 3") | {"first_words": "a & b"},
    ]
    page.open(*documents)
    shown = [o.get_property("textContent") for o in page.all("[name=sentence] option")]
    assert shown == [f"Sentence 1: {words}", "Sentence 2", "dev sentence 3: a & b"]


def test_words_have_the_labels_of_the_document(page):
    document = make_document()
    labels = [f"<i>word {number}</i>" for number, _ in enumerate(words_of(SOURCE))]
    document["sequences"]["source"]["labels"] = labels
    page.open(document)
    shown = [page.text(page.token("key", i)) for i, _ in enumerate(labels)]
    assert shown == labels
    page.subwords()
    assert page.text(page.token("key", 0)) == SOURCE[0]


def test_new_steps_and_data_appear_on_refresh(page):
    documents = training([10, 20])
    page.open(make_document()).mount([10], documents)
    assert not page.one(".step").is_displayed()
    page.browser.execute_script(
        """
        steps.push(20);
        documents[10].sequences.target.text = "changed";
        view.refresh();
        """
    )
    until(lambda: page.one(".step").is_displayed())
    until(lambda: "changed" in page.text(".texts"))
    assert page.text("output") == "10"


def test_the_slider_works_while_the_steps_are_read_again(page):
    page.open(make_document())
    page.browser.execute_script(SLOW_MOUNT, training([10, 20]))
    page.wait(".lines .token")
    page.browser.execute_script("view.refresh()")
    until(lambda: page.browser.execute_script("return answers.length") == 1)
    page.browser.execute_script(MOVE_SLIDER, 0)
    page.wait_for_step("10")
    page.browser.execute_script("answers[0]()")
    page.wait_for_step("10")
    assert not page.one("[role=alert]").is_displayed()


def test_the_answer_of_a_run_that_was_left_is_ignored(page):
    documents = {"slow": make_document(seed=1), "quick": make_document(seed=2)}
    for name, document in documents.items():
        document["sequences"]["target"]["text"] = f"of the {name} run"
    page.open(make_document())
    page.browser.execute_script(
        """
        const [documents] = arguments;
        const sentences = [{id: 0, title: "a", steps: [1]}];
        T2TAttention.mount(document.getElementById("attention"), {
          runs: async () => ["quick", "slow"],
          list: (run) => new Promise((answer, fail) => {
            if (run === "quick") answer({sentences});
            else globalThis.fail = () => fail(new Error("too late"));
          }),
          load: async (run) => documents[run],
        });
        """,
        documents,
    )
    until(lambda: "of the quick run" in page.text(".texts"))
    for run in (1, 0):
        page.one(f"[name=run] option[value='{run}']").click()
    page.browser.execute_script("globalThis.fail()")
    until(lambda: "of the quick run" in page.text(".texts"))
    assert not page.one("[role=alert]").is_displayed()


def test_two_hundred_tokens_stay_usable(page):
    words = [f"▁word{i}" for i in range(199)] + ["</s>"]
    document = make_document(
        source=words, target=words, aligned=range(200), layers=6, heads=8
    )
    page.open(document)
    # The best of five: other programs may interrupt the browser at any time.
    spent = page.browser.execute_script(
        "return [20, 21, 22, 23, 24].map((index) => {"
        "  const token = document.querySelector("
        "    `[data-side=query][data-index='${index}']`);"
        "  const start = performance.now();"
        "  token.dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));"
        "  return performance.now() - start;"
        "})"
    )
    assert min(spent) < 500
    # Bars of the rows in sight only.
    assert 0 < len(page.all("rect.bar")) < 8 * 100
    for view in ("heat", "grid", "table"):
        page.tab(view)
    assert len(page.table()[1]) == 48
