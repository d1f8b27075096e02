from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from results.measurements import recorded_measurements
from results.parsers import GOLD, SILVER, best_parser, silver_gap
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


def test_the_best_parser_is_that_of_the_best_search_on_short_sentences():
    table = recorded_measurements()["craft_search"]
    names = ("F1, up to 40 words", "F1, all", "dropout", "search", "repaired")
    columns = zip(*table.columns(*names), strict=True)
    lines = [dict(zip(names, line, strict=True)) for line in columns]
    best = max(lines, key=lambda line: line["F1, up to 40 words"])
    (default,) = [
        line
        for line in lines
        if (line["dropout"], line["search"]) == (best["dropout"], "default")
    ]
    assert best_parser({"craft_search": table}) == {
        "f1_40": best["F1, up to 40 words"],
        "f1": best["F1, all"],
        "repaired": default["repaired"],
    }
