"""The pages of results are what the files and templates give."""

from __future__ import annotations

import dataclasses
import re
import statistics
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results import derived, figures, pages, tables
from results.curves import recorded_curves
from results.measurements import recorded_measurements
from results.pages import (
    DETAILS,
    PAGE,
    page_values,
    results_page,
    template,
    write_pages,
)
from t2t_repro.features.reproduction.paper_tables import find_table as table
from t2t_repro.features.reproduction.result_files import Course, shipped_results
from tests.support.recorder import record

DOCS = Path(__file__).parents[2] / "docs"
# Each page and its template.
PAGES = [DOCS / PAGE, *(DOCS / "results" / name for name in DETAILS)]
TABLES = DOCS / "results" / "tables.md"
TEMPLATES = [template(page.name) for page in PAGES]
COLUMNS = ("perplexity (dev)", "BLEU (dev)", "BLEU (test)")
LONG_COLUMNS = (
    *COLUMNS,
    *("BLEU (dev+test)", "perplexity (dev), averaged", "BLEU (dev+test), averaged"),
)
FORM_COLUMNS = (
    *("nll (dev)", "BLEU (dev)", "BLEU (test)", "BLEU (dev+test)"),
    *("nll (dev), averaged", "BLEU (dev+test), averaged"),
)
# Published column with the BLEU of the systems that are measured, by table.
PUBLISHED = {
    "table3": "BLEU",
    "aop": "BLEU",
    "sensitivity": "Weighted",
    "randomisation": "BLEU",
}


def mean_and_spread(values: list[float], places: int = 2) -> str:
    if not values:
        return ""
    text = f"{statistics.mean(values):.{places}f}"
    if len(values) == 1:
        return text
    return f"{text} ± {statistics.stdev(values):.{places}f}"


def scores_of(system: str, scale: str, name: str) -> list[float]:
    return [
        result.scores[name]
        for result in shipped_results()
        if (result.system, result.scale) == (system, scale) and name in result.scores
    ]


def lines_of(name: str) -> list[tuple[str, list[str]]]:
    text = TABLES.read_text(encoding="utf-8").partition("| row | nll, difference |")
    found = re.findall(rf"^\| `{name}/(\w+)` \|(.*)\|$", "".join(text), re.M)
    return [(row, [x.strip() for x in line.split("|")]) for row, line in found]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_page_has_a_line_per_measured_row(name):
    expected = []
    for scale, scores in (("small", COLUMNS), ("long", LONG_COLUMNS)):
        for row in table(name).rows:
            values = [scores_of(str(row.system), scale, score) for score in scores]
            perplexity = row.published.get("PPL")
            cells = [
                "" if perplexity is None else f"{perplexity:.2f}",
                f"{row.published[PUBLISHED[name]]}{row.mark}",
                *map(mean_and_spread, values),
                str(len(values[1])),
            ]
            if values[1]:
                expected.append((row.name, cells))
    assert [(row, cells[:-1]) for row, cells in lines_of(name)] == expected


@pytest.mark.parametrize(
    ("name", "scale", "scores", "start"),
    [
        *((x, "small", COLUMNS, 2) for x in ("enfr", "attention", "branches")),
        ("dropout", "small", COLUMNS, 2),
        ("positions", "small", COLUMNS, 2),
        ("forms", "long", FORM_COLUMNS, 0),
        ("table4", "small", ("F1 (dev)", "F1 up to 40 words (dev)"), 2),
    ],
)
def test_the_page_has_a_line_per_newer_row_measured_or_not(name, scale, scores, start):
    """Until a row has a result file, its line says that there is none."""
    lines = lines_of(name)
    elsewhere = {x.system for x in shipped_results() if x.scale != scale}
    rows = [
        row
        for row in table(name).rows
        if row.hparams_set
        if scores_of(str(row.system), scale, scores[0]) or row.system not in elsewhere
    ]
    assert [row for row, _ in lines[: len(rows)]] == [row.name for row in rows]
    for row, (_, cells) in zip(rows, lines, strict=False):
        values = [scores_of(str(row.system), scale, score) for score in scores]
        expected = [
            mean_and_spread(own, 3 if "nll" in score else 2)
            for own, score in zip(values, scores, strict=True)
        ]
        if not values[0]:
            expected[0] = "not yet measured"
        assert cells[start : start + len(scores)] == expected
        if name != "table4":
            assert cells[start + len(scores)] == str(len(values[0]) or "")


@pytest.mark.parametrize(
    "written", [lambda found: tables.newer_rows(found, "small"), tables.parsers]
)
def test_results_of_other_scales_are_not_among_those_of_the_small_one(written):
    found = shipped_results()
    others = [dataclasses.replace(x, scale="long") for x in found]
    assert written([*found, *others]) == written(found) != written(others)


@cache
def shipped_pages():
    return results_page(shipped_results(), recorded_measurements(), recorded_curves())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_are_those_that_the_result_files_give(page):
    """If this fails, run `t2t reproduce --page docs/results.md`."""
    assert page.read_text(encoding="utf-8") == shipped_pages()[PAGES.index(page)]


def test_the_other_pages_and_the_figures_are_written_beside_the_page(
    monkeypatch, tmp_path
):
    drawn = record(monkeypatch, figures, "draw_figures", [Path("figures/a.svg")])
    page = tmp_path / "page.md"
    details = [tmp_path / "results" / name for name in DETAILS]
    assert write_pages(page, shipped_results()) == [
        Path("figures/a.svg"),
        page,
        *details,
    ]
    written = tuple(path.read_text(encoding="utf-8") for path in (page, *details))
    assert written == shipped_pages()
    data, folder = drawn.call.values()
    assert (data.results, data.curves) == (shipped_results(), recorded_curves())
    assert folder == tmp_path


def test_the_course_is_written_if_the_curves_give_another(monkeypatch, tmp_path):
    monkeypatch.setattr(figures, "draw_figures", lambda *_: [])
    monkeypatch.setattr(pages, "COURSE_FILE", tmp_path / "course.json")
    monkeypatch.setattr(pages, "shipped_course", lambda: Course([2.0]))
    *_, last = write_pages(tmp_path / "page.md", shipped_results())
    assert last == tmp_path / "course.json"
    assert "relative_updates" in last.read_text(encoding="utf-8")


# Names, and numbers of tables and sections, that nobody measured.
NAMES = re.compile(
    r"[Mm]ulti30k|WMT 2014|test2016|newstest201\d|Table \d|results\.md"
    r"|table1\.png|chrF|task 1|F1|equation \(\d\)|section \d(?:\.\d)?"
)
# A number in code that is nothing else, or in words.
HIDDEN = re.compile(r"`([\d.,]+)`|(?i:\w+ (?:hundred|thousand|million))\b")


@pytest.mark.parametrize("text", TEMPLATES, ids=[page.name for page in PAGES])
def test_a_template_has_no_number_of_its_own(text):
    """Numbers come from result files; code shows commands, not measurements."""
    text = NAMES.sub("", re.sub(r"\{[^}]*\}", "", text))
    assert [found[0] for found in HIDDEN.finditer(text)] == []
    assert re.findall(r".{0,30}\d.{0,20}", re.sub(r"`[^`]*`", "", text)) == []


def test_every_number_of_every_measurement_file_is_on_a_page_or_its_file_is_linked():
    """A number that nothing shows was forgotten, or belongs in no file."""
    places = set(re.findall(r"\{(\w+)\[(\w+)\]", "".join(TEMPLATES)))
    for name, measurement in recorded_measurements().items():
        expected = {(name, key) for key in measurement.numbers}
        if measurement.table is not None:
            expected.add((name, "table"))
        assert (name, "record") in places or expected <= places, expected - places


def test_the_linked_measurement_files_exist():
    for page in PAGES[1:]:
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\((data/[^)]*)\)", text):
            assert (page.parent / link).is_file()


@pytest.mark.parametrize("number", range(len(PAGES)))
def test_lines_of_prose_are_short_and_code_stays_on_its_line(number):
    prose = re.sub(
        r"```.*?```|^\|.*?$|^(?:!|- ).*?$",
        "",
        shipped_pages()[number],
        flags=re.DOTALL | re.M,
    )
    assert max(len(re.sub(r"`[^`]*`", "", line)) for line in prose.splitlines()) <= 96
    assert prose.count("`") % 2 == 0
    assert all(line.count("`") % 2 == 0 for line in prose.splitlines())


def test_every_figure_of_the_pages_is_in_the_repository():
    text = "".join(shipped_pages())
    linked = re.findall(r"\]\((?:\.\./)?(figures/\w+\.svg|\w+\.png)\)", text)
    assert {f"figures/{name}.svg" for name in figures.FIGURES} < set(linked)
    assert all((DOCS / name).is_file() for name in linked)


def test_the_difference_of_the_weighted_transformer_is_that_of_its_files():
    values = page_values(shipped_results(), recorded_measurements(), recorded_curves())
    for key, name in (("dev", "BLEU (dev)"), ("test", "BLEU (test)")):
        plain = scores_of("transformer_base", "small", name)
        weighted = scores_of("weighted_transformer_base", "small", name)
        gap = values["gap"]
        assert (gap["seeds"], gap["other_seeds"]) == (len(weighted), len(plain))
        assert gap[key] == pytest.approx(
            statistics.mean(weighted) - statistics.mean(plain)
        )
        assert (gap[f"{key}_low"], gap[f"{key}_high"]) == pytest.approx(
            derived.confidence_interval(weighted, plain)
        )
    eight = [
        statistics.mean(scores_of(system, "small", "BLEU (dev)"))
        for system in ("weighted_transformer_n8", "transformer_base_c_n8")
    ]
    assert values["size_gaps"]["n8"] == pytest.approx(eight[0] - eight[1])
    assert values["size_gaps"]["n6"] == pytest.approx(values["gap"]["dev"])
    # Printed: 24.8, 21.1 and 23.4; 26.5 against 25.8; 28.4 against 27.3.
    assert values["published"] == pytest.approx(
        {
            "learned": 24.8,
            "random": 21.1,
            "uniform": 23.4,
            "gain_dev": 0.7,
            "gain_test": 1.1,
            "gain_n8": 0.1,
            "gain_largest": 1.1,
            "plain_steps": 100_000,
            "weighted_steps": 60_000,
            "multi30k": 41.02,
            "added_weights": 192,
            "random_gap": -3.7,
            "uniform_gap": -1.4,
        }
    )
