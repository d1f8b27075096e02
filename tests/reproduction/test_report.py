from __future__ import annotations

import json

from t2t_repro.reproduction.report import (
    Block,
    Column,
    Report,
    make_block,
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
