from __future__ import annotations

import itertools
import re

import pytest

from t2t_repro.features.scores.card_page import Columns, column_chart


def rectangles(chart):
    pattern = r'class="series(\d)" x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"'
    return [tuple(map(float, found)) for found in re.findall(pattern, chart)]


def test_heights_are_in_proportion_and_end_on_one_floor():
    groups = [Columns("a", "", (10.0,)), Columns("b", "", (40.0,))]
    (_, _, y1, _, h1), (_, _, y2, _, h2) = rectangles(column_chart("t", groups, 40))
    assert h2 == pytest.approx(4 * h1, abs=0.3)
    assert y1 + h1 == pytest.approx(y2 + h2, abs=0.2)


def test_columns_follow_each_other_without_overlap():
    groups = [Columns(str(n), "", (1.0, 2.0)) for n in range(5)]
    found = rectangles(column_chart("t", groups, 2))
    assert [series for series, *_ in found] == [0, 1] * 5
    for (_, x1, _, width, _), (_, x2, *_) in itertools.pairwise(found):
        assert x1 + width <= x2


def test_a_missing_height_leaves_its_column_out():
    chart = column_chart("t", [Columns("a", "n", (None, 3.0))], 3)
    assert [series for series, *_ in rectangles(chart)] == [1]


def test_labels_are_escaped():
    chart = column_chart('<"t">', [Columns("<a>", "&", (1.0,))], 1)
    assert 'aria-label="&lt;&quot;t&quot;&gt;"' in chart
    assert ">&lt;a&gt;</text>" in chart
    assert ">&amp;</text>" in chart
