"""An optional feature of the search that is off costs nothing."""

from __future__ import annotations

import dataclasses
import json

import pytest

from t2t_repro.decoding.next_tokens import Constraints
from tests.golden.make_search_graph import CASES, GOLDEN, operations

CONSTRAINTS = {
    "minimum length": Constraints(min_length=3),
    "n-grams": Constraints(no_repeat_ngram_size=3),
}


@pytest.mark.parametrize("case", CASES)
def test_the_default_search_has_no_operation_of_an_optional_feature(case):
    expected = json.loads(GOLDEN.read_text())
    assert operations(CASES[case]) == expected[case]


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_a_feature_that_is_on_adds_operations(name):
    case = "beam 4, changing shapes"
    options = dataclasses.replace(CASES[case], constraints=CONSTRAINTS[name])
    before = json.loads(GOLDEN.read_text())[case]
    assert sum(operations(options).values()) > sum(before.values())
