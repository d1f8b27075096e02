from __future__ import annotations

import json

import pytest

from t2t_repro.features.reproduction.report_writer import (
    Block,
    Column,
    Report,
    make_block,
    mean_and_spread,
    write_report,
    write_reports,
)

BLOCKS = [
    Block([["name", "size"], ["a", "10"], ["bc", "9"]], frozenset({1})),
    Block([["name"], ["a"]], frozenset()),
]
REPORT = Report("t: a title", BLOCKS, ["a note", "word " * 40], {"é": [1, None]})


def test_a_block_has_headings_and_a_row_per_line():
    columns = [
        Column("word", str, is_number=False),
        Column("length", lambda word: f"{len(word)}"),
    ]
    block = make_block(columns, ["one", "three"])
    assert block.rows == [["word", "length"], ["one", "3"], ["three", "5"]]
    assert block.right == {1}


def test_text_is_aligned_and_wrapped():
    lines = write_report(REPORT).splitlines()
    assert lines[:7] == [
        "t: a title",
        "name  size",
        "a       10",
        "bc       9",
        "",
        "name",
        "a",
    ]
    assert lines[7] == "a note"
    assert [len(line) for line in lines[8:]] == [159, 39]


def test_the_title_of_a_block_is_above_its_table():
    block = make_block([Column("word", str, is_number=False)], ["one"], "A title:")
    report = Report("t: a title", [BLOCKS[1], block], [], {})
    assert write_report(report).splitlines()[1:] == [
        *("name", "a", "", "A title:", "word", "one"),
    ]
    lines = write_report(report, "markdown").splitlines()
    assert lines[-5:] == ["A title:", "", "| word |", "| --- |", "| one |"]


@pytest.mark.parametrize(
    ("values", "places", "text"),
    [
        ([], 2, ""),
        ([2.0], 2, "2.00"),
        ([1.0, 2.0, 3.0], 2, "2.00 ± 1.00"),
        ([2.0005, 2.0015], 3, "2.001 ± 0.001"),
    ],
)
def test_seeds_are_written_as_a_mean_with_its_deviation(values, places, text):
    assert mean_and_spread(values, places) == text


def test_markdown_keeps_notes_whole():
    assert write_report(REPORT, "markdown").splitlines()[:5] == [
        "### t: a title",
        "",
        "| name | size |",
        "| --- | ---: |",
        "| a | 10 |",
    ]
    assert f"- {REPORT.notes[1]}" in write_report(REPORT, "markdown")


def test_json_is_an_object_or_an_array():
    assert json.loads(write_report(REPORT, "json")) == REPORT.data
    assert json.loads(write_reports([REPORT] * 2, "json")) == [REPORT.data] * 2
    assert "é" in write_report(REPORT, "json")


def test_several_texts_are_separated_by_an_empty_line():
    one = write_report(REPORT)
    assert write_reports([REPORT, REPORT]) == f"{one}\n\n{one}"
