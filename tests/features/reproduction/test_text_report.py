from __future__ import annotations

import dataclasses

from t2t_repro import catalogue
from t2t_repro.features.reproduction.paper_tables import find_table
from t2t_repro.features.reproduction.report_writer import MAX_WIDTH, write_report
from t2t_repro.features.reproduction.result_files import NO_COURSE, NOT_YET, Course
from t2t_repro.features.reproduction.text_report import added_weights, text_report
from tests.support.result import RESULT

REPORT = text_report(find_table("text"), catalogue.hparams)


def ours(results=(), course=NO_COURSE):
    report = text_report(find_table("text"), catalogue.hparams, results, course)
    headings, *rows = report.blocks[0].rows
    return {row[0]: dict(zip(headings, row, strict=True))["ours"] for row in rows}


def test_what_nobody_measured_is_not_yet_measured():
    figures = ours([dataclasses.replace(RESULT, system="transformer_base")])
    assert figures.pop("added_weights") != NOT_YET
    assert set(figures.values()) == {NOT_YET}


def test_the_time_of_a_step_is_that_of_the_papers_scale():
    results = [
        dataclasses.replace(
            RESULT, system=system, scale=scale, seconds=seconds, steps=1_000
        )
        for system, scale, seconds in (
            ("transformer_base", "paper", 300.0),
            ("transformer_base", "paper", 500.0),
            ("transformer_base", "small", 7_000.0),
            ("transformer_big", "paper", 1_250.0),
            ("transformer_base_a_h1", "paper", 9_000.0),
            ("transformer_base_aop1", "paper", 500.0),
        )
    ]
    figures = ours(results)
    assert figures["base_step_seconds"] == "0.40 s"
    assert figures["big_step_seconds"] == "1.25 s"
    assert figures["aop_step_time"] == "+25 %"
    assert ours(results[:-1])["aop_step_time"] == NOT_YET


def test_saved_iterations_and_the_spread_of_branches_are_ranges_of_the_seeds():
    figures = ours(course=Course([2 / 3, 0.75, 5 / 6], [1.04, 2.96]))
    assert figures["fewer_iterations"] == "33 % fewer to 17 % fewer (3 seeds)"
    assert figures["branch_weight_spread"] == "1.0 to 3.0 (2 seeds)"
    figures = ours(course=Course([4 / 3]))
    assert figures["fewer_iterations"] == "33 % more (1 seed)"
    assert figures["branch_weight_spread"] == NOT_YET


def test_two_residuals_add_one_kappa_and_one_alpha_per_branch():
    """In 12 layers: 8 branches give the paper's 192, and 16 twice as many."""
    base, big = (added_weights(catalogue.hparams, size) for size in ("base", "big"))
    assert (base, big) == (12 * 2 * 8, 12 * 2 * 16)
    (note,) = [x for x in REPORT.notes if x.startswith("added_weights")]
    assert note.endswith("weighted_transformer_base has 192.")


def test_the_report_holds_all_figures_and_their_sources():
    text = write_report(REPORT)
    assert max(map(len, text.splitlines())) <= MAX_WIDTH
    for row in find_table("text").rows:
        assert str(row.published["source"]) in text
    data = REPORT.data["lines"][0]
    assert (data["published"], data["ours"]) == ("0.4 s", NOT_YET)
