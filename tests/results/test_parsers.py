from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results.parsers import GOLD, SILVER, silver_gap
from t2t_repro.features.reproduction.result_files import Result, shipped_results


def parser(system: str, seed: int, f1_40: float, f1: float) -> Result:
    shipped = next(x for x in shipped_results() if x.system == GOLD)
    scores = {"F1 up to 40 words (dev)": f1_40, "F1 (dev)": f1}
    return dataclasses.replace(shipped, system=system, seed=seed, scores=scores)


def test_the_gap_of_silver_trees_is_between_means_and_has_the_range_of_gold_seeds():
    results = [
        parser(GOLD, 1, 84.0, 81.0),
        parser(GOLD, 2, 85.0, 81.5),
        parser(SILVER, 1, 84.0, 82.0),
        parser(SILVER, 2, 86.0, 82.5),
        parser("another", 1, 1.0, 1.0),
    ]
    assert silver_gap(results) == {
        "f1_40": 0.5,
        "f1_40_range": 1.0,
        "f1": 1.0,
        "f1_range": 0.5,
        "seeds": 2,
    }
