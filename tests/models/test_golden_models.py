"""Names, initial weights and dropout of every kind of model never change."""

from __future__ import annotations

import json

import pytest

from tests.golden.make_models import GOLDEN, cases, summary

CASES = dict(cases())
EXPECTED = json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_every_kind_of_registered_set_and_every_variant_has_a_golden_summary():
    assert set(CASES) == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_initial_state_of_a_model_never_changes(name):
    found, expected = summary(CASES[name]), EXPECTED[name]
    for digest in ("variables", "order", "trainable order", "seeds"):
        assert found[digest] == expected[digest], digest
    # bfloat16 keeps three digits.
    rounding = 0.02 if CASES[name].activation_dtype == "bfloat16" else 2e-4
    assert found["weights"] == pytest.approx(expected["weights"], abs=0.01)
    for loss in ("training loss", "loss"):
        assert found[loss] == pytest.approx(expected[loss], abs=rounding), loss
