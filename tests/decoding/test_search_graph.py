"""An optional feature of the search that is off costs nothing."""

from __future__ import annotations

import json

import pytest

from tests.golden.make_search_graph import CASES, GOLDEN, operations


@pytest.mark.parametrize("case", CASES)
def test_the_default_search_has_no_operation_of_an_optional_feature(case):
    expected = json.loads(GOLDEN.read_text())
    assert operations(CASES[case]) == expected[case]
