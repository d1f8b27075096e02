from __future__ import annotations

import json

import pytest

from t2t_repro.features.reproduction.complexity_report import (
    complexity_report,
    layers_of,
)
from t2t_repro.features.reproduction.layer_complexity import SEQUENCE_LAYERS, Measured
from t2t_repro.features.reproduction.paper_tables import find_table, select
from t2t_repro.features.reproduction.report_writer import MAX_WIDTH, write_report

MEASURED = Measured(
    seconds_by_length={64: 0.5, 128: 1.5},
    seconds_by_width={32: 0.25},
    length_exponent=1.375,
    width_exponent=2.125,
    sequential={8: 85, 64: 645},
    paths={9: 8, 81: 80},
)
RESULTS = {kind.label: MEASURED for kind in SEQUENCE_LAYERS}


def cells(report, block):
    headings, *rows = report.blocks[block].rows
    return [dict(zip(headings, row, strict=True)) for row in rows]


def test_a_row_has_the_layers_of_its_kind():
    labels = [kind.label for kind in layers_of(select("table1/convolutional"))]
    assert labels == [
        "convolution, k = 3",
        "dilated convolutions, k = 3",
        "separable convolution, k = 3",
    ]
    assert len(layers_of(find_table("table1"))) == len(SEQUENCE_LAYERS) == 6


def test_orders_are_shown_beside_measurements():
    report = complexity_report(select("table1/recurrent"), RESULTS)
    assert cells(report, 0) == [
        {
            "row": "recurrent",
            "layer": "recurrent (GRU)",
            "complexity": "O(n d^2)",
            "sequential": "O(n)",
            "path": "O(n)",
            "time ~ n^": "1.38",
            "time ~ d^": "2.12",
        }
    ]
    assert cells(report, 1) == [
        {
            "row": "recurrent",
            "layer": "recurrent (GRU)",
            "sequential, n = 8, 16, 32, 64": "85, 645",
            "path, n = 9, 27, 81": "8, 80",
            "timed at": "n 64-512; d 256-2048 at n = 64",
        }
    ]


def test_orders_that_the_paper_does_not_print_are_marked():
    report = complexity_report(find_table("table1"), RESULTS)
    marked = {
        row["layer"]: [name for name, cell in row.items() if cell.endswith("*")]
        for row in cells(report, 0)
    }
    assert marked.pop("separable convolution, k = 3") == ["sequential", "path"]
    assert len(marked) == 5
    assert not any(marked.values())
    assert any(note.startswith("*: the paper does not print") for note in report.notes)


def test_no_line_is_wider_than_160_characters():
    report = complexity_report(find_table("table1"), RESULTS)
    lines = write_report(report).splitlines()
    assert max(map(len, lines)) <= MAX_WIDTH


def test_json_has_the_measured_times():
    report = complexity_report(select("table1/recurrent"), RESULTS)
    (line,) = json.loads(write_report(report, "json"))["lines"]
    assert (line["row"], line["layer"]) == ("recurrent", "recurrent (GRU)")
    assert line["published"]["complexity"] == "n d^2"
    assert line["measured"]["seconds_by_length"] == {"64": 0.5, "128": 1.5}
    assert line["sizes"]["length_of_widths"] == 64


def test_a_plot_is_a_png(tmp_path):
    pytest.importorskip("matplotlib", reason="plots need the extra `plot`")
    from t2t_repro.features.reproduction.complexity_report import plot_complexity

    seconds = {64: 0.01, 128: 0.02}
    measured = Measured(seconds, seconds, 1.0, 1.0, {8: 3}, {9: 1})
    plot_complexity({"convolution": measured}, str(tmp_path / "table1.png"))
    assert (tmp_path / "table1.png").read_bytes().startswith(b"\x89PNG")
