"""Write the pages of results: templates, filled in from result files.

A template holds no measured number, only places for them in the form of
`str.format`, such as `{multi30k_ende[bleu]:.2f}`: a file, a value and its format.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from results import (
    claims,
    derived,
    figures,
    form_differences,
    form_runs,
    noise,
    parsers,
    readings,
    seeds,
    tables,
)
from results.additive_model import POWER
from results.convergence import course_of
from results.curves import Curve, recorded_curves
from results.measurements import Measurement, recorded_measurements
from t2t_repro import catalogue
from t2t_repro.features.reproduction.order_agreement import (
    COVERAGE,
    LEAST_DIFFERENCES,
)
from t2t_repro.features.reproduction.paper_tables import find_table
from t2t_repro.features.reproduction.report_writer import write_report
from t2t_repro.features.reproduction.result_files import (
    COURSE_FILE,
    Course,
    Result,
    shipped_course,
)
from t2t_repro.features.reproduction.text_report import text_report
from t2t_repro.files import atomic_write

# Templates, and the pages beside the first one that are made from the others.
PAGE = "results.md"
DETAILS = ("tables.md", "notebook.md")
DETAILS_FOLDER = "results"
LINE_LENGTH = 96
# Blocks that begin so are not filled.
_AS_THEY_ARE = ("```", "|", "#", "!", "- ", "* ")
_SPACE = "\0"
# Name in the templates -> system whose scores over the seeds it has.
_SYSTEMS = {
    "base": derived.PLAIN,
    "weighted": derived.WEIGHTED,
    "earlier": derived.AROUND,
    "low_big": "transformer_big_dropout1",
    "learned": "weighted_transformer_n2",
    "weighted_n4": "weighted_transformer_n4",
    "random": "weighted_transformer_n2_random",
    "uniform": "weighted_transformer_n2_uniform",
    "enfr": f"{derived.PLAIN}_enfr",
    "big_enfr": "transformer_big_enfr",
    "weighted_enfr": f"{derived.WEIGHTED}_enfr",
    "weighted_big_enfr": "weighted_transformer_big_enfr",
    "aop1": f"{derived.PLAIN}_aop1",
    "aop2": f"{derived.PLAIN}_aop2",
}


def write_pages(page: str | Path, results: Sequence[Result]) -> list[Path]:
    """Write the page of results and what goes with it.

    The folders of the other pages and of figures are beside the page. If the learning
    curves give other numbers than the package includes, these are written, too.

    Args:
        page: File of the page, in an existing folder.
        results: Results of rows of the papers' tables.

    Returns:
        Paths of the written files.
    """
    page = Path(page)
    measurements, curves = recorded_measurements(), recorded_curves()
    texts = results_page(results, measurements, curves)
    data = figures.FigureData(results, measurements, curves)
    paths = figures.draw_figures(data, page.parent)
    details = page.parent / DETAILS_FOLDER
    details.mkdir(exist_ok=True)
    names = (page, *(details / name for name in DETAILS))
    for path, text in zip(names, texts, strict=True):
        atomic_write(path, text)
        paths.append(path)
    return paths + _write_course(course_of(curves))


def _write_course(course: Course) -> list[Path]:
    if course == shipped_course():
        return []
    with resources.as_file(COURSE_FILE) as path:
        course.save(path)
    return [path]


def template(name: str) -> str:
    """Return the template of one of the pages."""
    folder = resources.files("results") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def results_page(
    results: Sequence[Result],
    measurements: Mapping[str, Measurement],
    curves: Sequence[Curve],
) -> tuple[str, ...]:
    """Return the page of results, then those of `DETAILS`.

    Args:
        results: Results of rows of the papers' tables.
        measurements: Other measurements by name.
        curves: Learning curves.

    Raises:
        KeyError: If a template names a value that no file holds.
    """
    values = page_values(results, measurements, curves)
    details = {
        **values,
        "figures": {
            name: text.replace("](", "](../", 1)
            for name, text in values["figures"].items()
        },
    }
    return (
        _filled_in(PAGE, values),
        *(_filled_in(name, details) for name in DETAILS),
    )


def _filled_in(name: str, values: Mapping[str, Any]) -> str:
    blocks = template(name).format_map(values).split("\n\n")
    return "\n\n".join(map(_filled, blocks))


def page_values(
    results: Sequence[Result],
    measurements: Mapping[str, Measurement],
    curves: Sequence[Curve],
) -> dict[str, Any]:
    """Return the values that the templates may name.

    Args:
        results: Results of rows of the papers' tables.
        measurements: Other measurements by name.
        curves: Learning curves.
    """
    repeats = form_runs.cpu_repeats(
        measurements["accelerator_agreement"], form_runs.recorded_repeats()
    )
    return {
        **{name: found.values() for name, found in measurements.items()},
        "tables": {
            "rows": tables.measured_rows(results, "small"),
            "long_rows": tables.measured_rows(results, "long"),
            "newer_rows": tables.newer_rows(results, "small"),
            "newer_long_rows": tables.newer_rows(results, "long"),
            **readings.tables(results, curves, repeats),
            "parsers": tables.parsers(results),
            "agreement": tables.agreement(results, "small"),
            "long_agreement": tables.agreement(results, "long"),
            "commented": tables.commented_rows(),
            "text": _text_figures(results, curves),
        },
        "figures": figures.links(),
        "widths": derived.units_per_head(),
        "best_f1_40": max(
            measurements["craft_search"].columns("F1, up to 40 words")[0]
        ),
        "silver": parsers.silver_gap(results),
        "depths": derived.trained_depths(),
        "small_scale": derived.small_scale(),
        "long": derived.long_scale(),
        "chance": {
            "percent": round(100 * COVERAGE),
            "least": LEAST_DIFFERENCES["PPL"],
            "level": round(100 * form_differences.LEVEL),
            "power": round(100 * POWER),
        },
        "noise": noise.noise(results),
        "directions": noise.directions(results, "small"),
        "long_directions": noise.directions(results, "long", ["transformer_big"]),
        **_table3(results),
        "accelerated": derived.accelerated(results),
        **readings.values(results, curves, repeats),
        "claims": claims.values(results, curves, measurements["weighted_around"]),
        "times": derived.update_minutes(results),
        "size_gaps": derived.size_gaps(results, "BLEU (dev)"),
        "size_gaps_perplexity": derived.size_gaps(results, "perplexity (dev)"),
        "gap": derived.difference(results, derived.WEIGHTED, derived.PLAIN),
        "around": derived.difference(results, derived.AROUND, derived.PLAIN),
        **{name: seeds.spread(results, system) for name, system in _SYSTEMS.items()},
        **{
            f"{name}_gap": seeds.seed_gaps(results, _SYSTEMS[name], _SYSTEMS["learned"])
            for name in ("random", "uniform")
        },
        "published": derived.published_values(),
    }


def _table3(results: Sequence[Result]) -> dict[str, Any]:
    """Return what the page says about the order of Table 3."""
    rows = [row.name for row in find_table("table3").rows]
    return {
        "order": noise.table3_order(results, "long", rows),
        "order_testable": noise.table3_order(
            results, "long", [x for x in rows if x not in derived.TOO_NARROW]
        ),
        "order_rest": noise.table3_order(
            results, "long", [x for x in rows if x != "big"]
        ),
        "small_all": noise.table3_order(results, "small", rows),
        "small_testable": noise.table3_order(
            results,
            "small",
            [x for x in rows if x not in derived.TOO_NARROW],
        ),
    }


def _text_figures(results: Sequence[Result], curves: Sequence[Curve]) -> str:
    course = course_of(curves)
    report = text_report(find_table("text"), catalogue.hparams, results, course)
    _, _, *lines = write_report(report, "markdown").splitlines()
    return "\n".join(lines)


def _filled(block: str) -> str:
    """Break the lines of a paragraph; leave tables, code and lists as they are."""
    if block.lstrip("\n").startswith(_AS_THEY_ARE):
        return block
    # Code stays on one line, so that it can be searched for and copied.
    joined = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", _SPACE), block)
    filled = textwrap.fill(
        joined.replace("\n", " ").strip(),
        LINE_LENGTH,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(_SPACE, " ") + "\n" * block.endswith("\n")
