from __future__ import annotations

import dataclasses
import itertools

import pytest
from scipy import stats

from t2t_repro.reproduction.lookup import find_table
from t2t_repro.reproduction.page.ablation import (
    Repeat,
    comparison,
    cpu_repeats,
    forms,
)
from tests.support.curve import CURVE
from tests.support.measurement import MEASUREMENT
from tests.support.result import RESULT

ROWS = find_table("forms").rows
PLAIN, AROUND, SHARED = (
    next(str(row.system) for row in ROWS if row.name == name)
    for name in ("transformer", "around", "shared")
)


def result(system: str, seed: int, nll: float, bleu: float = 30.0):
    scores = {
        "nll (dev)": nll,
        "BLEU (dev)": bleu,
        "BLEU (test)": bleu + 2,
        "BLEU (dev+test)": bleu + 1,
        "nll (dev), averaged": nll - 0.5,
        "BLEU (dev+test), averaged": bleu + 2,
    }
    return dataclasses.replace(
        RESULT, system=system, scale="long", seed=seed, scores=scores
    )


RESULTS = [
    result(PLAIN, 1, 2.0),
    result(PLAIN, 2, 2.125),
    result(AROUND, 1, 2.5, 28.0),
    result(AROUND, 2, 2.75, 28.5),
    result(SHARED, 1, 2.25, 31.0),
]
# With four degrees of freedom, as two rows have five seeds.
SEEDS = [1, 2, 3, 4, 5]
PLAIN_NLL = [2.0, 2.125, 2.25, 2.0625, 2.1875]
AROUND_NLL = [2.125, 2.375, 2.25, 2.1875, 2.375]
SEVERAL = [
    *map(result, [PLAIN] * 5, SEEDS, PLAIN_NLL),
    *map(result, [AROUND] * 5, SEEDS, AROUND_NLL, [28.0, 28.5, 29.0, 28.25, 28.0]),
    result(SHARED, 1, 2.25, 31.0),
]
CURVES = [
    dataclasses.replace(
        CURVE, name=f"{name}-long", seed=seed, steps=(100, 200), nll=nll
    )
    for name, seed, nll in [
        (PLAIN, 1, (3.0, 2.0)),
        (PLAIN, 2, (3.0, 2.0)),
        (AROUND, 1, (3.0, 2.5)),
        (AROUND, 2, (3.0, 2.25)),
        (AROUND, 3, (3.0, 2.0)),
    ]
]


def cells(row: str, results=RESULTS, curves=CURVES, repeats=()) -> dict[str, str]:
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in forms(results, curves, repeats).splitlines()
    ]
    (found,) = [line for line in lines if line[0] == f"`forms/{row}`"]
    return dict(zip(lines[0], found, strict=True))


def test_rows_without_results_are_not_yet_measured():
    found = cells("inside")
    assert found["dev nll"] == "not yet measured"
    assert set(itertools.islice(found.values(), 4, None)) == {""}


def test_scores_are_means_with_the_deviation_of_the_seeds():
    found = cells("around")
    assert found["dev nll"] == "2.625 ± 0.177"
    assert found["dev BLEU"] == "28.25 ± 0.35"
    assert found["both"] == "29.25 ± 0.35"
    assert found["seeds"] == "2"
    assert found["dev nll, average"] == "2.125 ± 0.177"
    assert found["both, average"] == "30.25 ± 0.35"
    assert cells("shared")["dev nll"] == "2.250"


def test_other_scales_do_not_count():
    small = [dataclasses.replace(x, scale="small") for x in RESULTS]
    assert cells("around", small)["dev nll"] == "not yet measured"


def test_p_values_are_those_of_the_model_of_systems_and_seeds():
    """Two rows have all seeds, so the differences per seed are a paired test."""
    paired = stats.ttest_rel(PLAIN_NLL, AROUND_NLL).pvalue
    found = cells("around", SEVERAL)
    assert float(found["nll, p"]) == pytest.approx(paired, abs=5e-4)
    assert float(cells("shared", SEVERAL)["nll, p"]) < 1
    assert found["both, p"] != found["nll, p"]


def test_runs_on_cpus_are_compared_with_runs_on_cpus():
    """The accelerator has lower scores here, which must not look like a difference."""
    accelerated = [
        dataclasses.replace(
            x,
            scores={name: value - 1 for name, value in x.scores.items()},
            versions={"jax": "1"},
        )
        for x in SEVERAL
        if x.system == PLAIN
    ]
    on_cpu = [x for x in SEVERAL if x.system == AROUND]
    repeats = [Repeat(PLAIN, x.seed, x.scores) for x in SEVERAL if x.system == PLAIN]
    assert "nll, p" not in cells("around", [*accelerated, *on_cpu])
    found = cells("around", [*accelerated, *on_cpu], repeats=repeats)
    paired = stats.ttest_rel(PLAIN_NLL, AROUND_NLL).pvalue
    assert float(found["nll, p"]) == pytest.approx(paired, abs=5e-4)
    assert found["dev nll"] == cells("around", SEVERAL)["dev nll"]


def test_cpu_repeats_are_read_from_the_table_of_their_differences():
    table = {
        "columns": [
            {"heading": heading, "format": ""}
            for heading in ("row of forms", "CPU seed", "nll, CPU", "both, CPU")
        ],
        "rows": [["`around`", 3, 2.5, 31.0]],
    }
    agreement = dataclasses.replace(MEASUREMENT, table=table)
    expected = {"nll (dev)": 2.5, "BLEU (dev+test)": 31.0}
    assert cpu_repeats(agreement) == [Repeat(AROUND, 3, expected)]


def test_the_first_row_has_no_p_value():
    assert cells("transformer", SEVERAL)["nll, p"] == ""


def test_columns_without_any_value_are_left_out():
    """Without several seeds, or without the first row, there is no p-value."""
    for few in (RESULTS, RESULTS[::2], SEVERAL[5:], SEVERAL[1:]):
        assert not {"nll, p", "both, p"} & cells("around", few).keys()
    plain = [dataclasses.replace(curve, branches={}) for curve in CURVES]
    assert "spread" not in cells("around", curves=plain)


def test_only_what_the_noise_tells_apart_is_said_to_differ():
    """Two seeds of five systems; the noise is 0.01, and one system is far off."""
    systems = [str(row.system) for row in ROWS[:5]]
    nll = dict(zip(systems, [2.0, 2.01, 2.5, 2.005, 2.0], strict=True))
    results = []
    for number, (system, value) in enumerate(nll.items()):
        for seed in (1, 2):
            noise = 0.01 * (-1) ** (number + seed)
            score = value + 0.1 * seed + noise
            results.append(result(system, seed, score, bleu=30 + 100 * noise))
    found, _, bleu = comparison(results).partition(" By BLEU")
    names = [f"`{row.name}`" for row in ROWS[1:5]]
    assert found == (
        f"By dev nll, these rows differ from the Transformer: {names[1]}; these cannot "
        f"be told from it: {names[0]}, {names[2]}, {names[3]}."
    )
    assert bleu.count("none; these cannot be told") == 1


def test_without_several_seeds_nothing_is_compared():
    assert "the noise has 0 degree(s) of freedom" in comparison(RESULTS[::2])
    assert "the noise has 1 degree(s) of freedom" in comparison(RESULTS)
    assert comparison(SEVERAL[5:]).startswith("Too few rows have several seeds")


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


def test_updates_are_those_of_the_seeds_that_both_have():
    """Seed 1: 200 against 150 updates; seed 2: 200 against 175."""
    expected = ((200 / 150) * (200 / 175)) ** 0.5
    assert cells("around")["updates"] == f"{expected:.2f}"
    assert cells("shared")["updates"] == cells("transformer")["updates"] == ""


def test_curves_of_another_scale_do_not_count():
    small = [
        dataclasses.replace(x, name=x.name.replace("long", "small")) for x in CURVES
    ]
    assert not {"updates", "spread"} & cells("around", curves=small).keys()
