from __future__ import annotations

import dataclasses
import json
import math

import pytest

from results.convergence import (
    branch_spreads,
    changed_order,
    course_of,
    relative_updates,
    updates_to,
)
from results.curves import recorded_curves
from t2t_repro.features.reproduction.result_files import Course, shipped_course
from tests.support.curve import CURVE

SLOW = dataclasses.replace(CURVE, steps=(100, 200, 300, 400), nll=(4.0, 3.0, 2.5, 2.0))
FAST = dataclasses.replace(CURVE, steps=(100, 200, 300, 400), nll=(3.0, 2.0, 1.5, 1.0))


def test_between_two_evaluations_the_nll_changes_linearly():
    assert updates_to(2.5, SLOW.steps, SLOW.nll) == 300
    assert updates_to(2.75, SLOW.steps, SLOW.nll) == 250
    assert updates_to(3.25, SLOW.steps, SLOW.nll) == 175


def test_the_first_evaluation_that_is_low_enough_counts_even_if_the_nll_rises_later():
    assert updates_to(2.0, (10, 20, 30, 40), (3.0, 2.0, 2.5, 1.0)) == 20
    assert updates_to(9.0, (10, 20), (3.0, 2.0)) == 10


def test_an_nll_that_is_never_reached_is_an_error():
    with pytest.raises(ValueError, match=r"at most 1.5, received 2.0"):
        updates_to(1.5, SLOW.steps, SLOW.nll)


def test_a_pair_of_branches_changes_its_order_within_a_layer():
    names = [f"encoder/layer_{x}" for x in ("0/kappa/0", "0/kappa/1", "0/kappa/2")]
    values = ((0.5, 0.2), (0.3, 0.5), (0.2, 0.3))
    alphas = {"encoder/layer_0/alpha/0": (1.0, 0.0)}
    branches = dict(zip(names, values, strict=True)) | alphas
    # 0 and 1 change, 0 and 2 change, 1 and 2 do not; alpha is compared with no kappa.
    curve = dataclasses.replace(CURVE, branches=branches)
    assert changed_order(curve) == pytest.approx(2 / 3)


def test_changes_of_order_are_counted_from_a_share_of_the_updates_on():
    branches = {
        "encoder/layer_0/kappa/0": (0.1, 0.6, 0.6),
        "encoder/layer_0/kappa/1": (0.9, 0.4, 0.4),
    }
    curve = dataclasses.replace(CURVE, steps=(100, 200, 400), branches=branches)
    assert changed_order(curve) == 1.0
    assert changed_order(curve, since=0.25) == 1.0
    assert changed_order(curve, since=0.5) == 0.0


def test_updates_are_compared_at_the_nll_that_both_reach():
    assert relative_updates(FAST, SLOW) == 200 / 400
    assert relative_updates(SLOW, FAST) == 400 / 200
    assert relative_updates(SLOW, SLOW) == 1


def test_a_curve_that_rises_at_the_end_is_compared_at_its_lowest_point():
    rising = dataclasses.replace(SLOW, nll=(4.0, 3.0, 2.5, 2.75))
    assert relative_updates(rising, FAST) == 300 / 150


def test_spreads_are_those_of_each_layer_and_kind_at_the_end():
    curve = dataclasses.replace(
        CURVE,
        branches={
            "encoder/layer_0/kappa/0": (9.0, 0.25),
            "encoder/layer_0/kappa/1": (0.5, 0.75),
            "encoder/layer_0/alpha/0": (0.5, 0.5),
            "encoder/layer_0/alpha/1": (0.5, 0.5),
            "decoder/layer_0/alpha/0": (0.5, 1.0),
            "decoder/layer_0/alpha/1": (0.5, 0.0),
        },
    )
    assert branch_spreads(curve) == [3.0, 1.0, math.inf]
    assert branch_spreads(dataclasses.replace(CURVE, branches={})) == []


WIDE = {"a/kappa/0": (0.5, 0.75), "a/kappa/1": (0.5, 0.25)}


def test_the_course_has_a_number_per_seed_of_the_long_scale():
    curves = [
        dataclasses.replace(CURVE, name=name, seed=seed, nll=nll, branches=branches)
        for name, seed, nll, branches in [
            ("transformer_base-long", 1, (3.0, 2.0), {}),
            ("transformer_base-long", 2, (3.0, 2.0), {}),
            ("transformer_base-long", 3, (3.0, 2.0), {}),
            ("weighted_transformer_base-long", 1, (2.5, 1.0), WIDE),
            ("weighted_transformer_base-long", 2, (3.0, 1.5), CURVE.branches),
            ("weighted_transformer_base-small", 3, (1.0, 0.5), CURVE.branches),
        ]
    ]
    # 20 against 13.3 and 16.7 updates.
    assert course_of(curves) == Course([0.6667, 0.8333], [1.0, 3.0])
    assert course_of(curves[:4]) == Course([0.6667], [3.0])
    assert course_of(curves[-1:]) == Course([], [])


def test_a_course_is_read_as_it_was_written(tmp_path):
    course = Course([0.5, 1.5], [2.0])
    course.save(tmp_path / "course.json")
    text = (tmp_path / "course.json").read_text(encoding="utf-8")
    assert Course(**json.loads(text)) == course


def test_the_shipped_course_is_what_the_curves_give():
    """If this fails, run `t2t reproduce --page docs/results.md`."""
    assert shipped_course() == course_of(recorded_curves())
