from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results.ablation import forms
from tests.support.form_runs import AROUND, CURVES, RESULTS, table_rows


def cells(row: str, results=RESULTS, curves=CURVES) -> dict[str, str]:
    rows = table_rows(forms(results, curves))
    return next(found for found in rows if found["row"] == f"`forms/{row}`")


def test_rows_without_results_are_not_yet_measured():
    assert cells("inside")["dev nll"] == "not yet measured"
    small = [dataclasses.replace(x, scale="small") for x in RESULTS]
    assert cells("around", small)["dev nll"] == "not yet measured"


def test_the_spread_is_the_median_and_the_largest_of_the_layers():
    assert cells("around")["spread"] == "1.0, 1.0"
    wide = dataclasses.replace(
        CURVES[2],
        seed=9,
        branches={"a/kappa/0": (0.5, 0.75), "a/kappa/1": (0.5, 0.3)},
    )
    assert cells("around", curves=[*CURVES, wide])["spread"] == "1.0, 2.5"
    off = dataclasses.replace(
        wide, branches={"a/kappa/0": (0.5, 1.0), "a/kappa/1": (0.5, 0.0)}
    )
    assert cells("around", curves=[*CURVES, off])["spread"] == "1.0, > 100"


def test_the_spread_is_left_out_if_no_row_has_branches():
    plain = [dataclasses.replace(curve, branches={}) for curve in CURVES]
    assert "spread" not in cells("around", curves=plain)
    small = [
        dataclasses.replace(x, name=x.name.replace("long", "small")) for x in CURVES
    ]
    assert "spread" not in cells("around", curves=small)


def test_the_hardware_of_a_row_is_that_of_its_runs():
    accelerated = [dataclasses.replace(x, versions={"jax": "1"}) for x in RESULTS]
    mixed = [x for x in RESULTS if x.system != AROUND or x.seed > 1]
    mixed += [x for x in accelerated if x.system == AROUND and x.seed == 1]
    assert cells("around")["trained on"] == "CPU"
    assert cells("around", accelerated)["trained on"] == "accelerator"
    assert cells("around", mixed)["trained on"] == "CPU and accelerator"
