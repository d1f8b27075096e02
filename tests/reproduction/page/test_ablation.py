from __future__ import annotations

import dataclasses
import itertools

import pytest
from scipy import stats

from t2t_repro.reproduction.lookup import find_table
from t2t_repro.reproduction.page.ablation import comparison, forms
from tests.support.curve import CURVE
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


def cells(row: str, results=RESULTS, curves=CURVES) -> dict[str, str]:
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in forms(results, curves).splitlines()
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
    """Two rows have both seeds, so the differences per seed are a paired test."""
    paired = stats.ttest_rel([2.0, 2.125], [2.5, 2.75]).pvalue
    assert float(cells("around")["nll, p"]) == pytest.approx(paired, abs=5e-4)
    assert float(cells("shared")["nll, p"]) < 1
    assert cells("around")["both, p"] != cells("around")["nll, p"]


def test_the_first_row_has_no_p_value():
    assert cells("transformer")["nll, p"] == ""


def test_columns_without_any_value_are_left_out():
    """Without a second seed, or without the first row, there is no p-value."""
    assert not {"nll, p", "both, p"} & cells("around", RESULTS[::2]).keys()
    assert not {"nll, p", "both, p"} & cells("around", RESULTS[2:]).keys()
    plain = [dataclasses.replace(curve, branches={}) for curve in CURVES]
    assert "spread" not in cells("around", curves=plain)


def test_only_what_the_noise_tells_apart_is_said_to_differ():
    """Two seeds of four systems; the noise is 0.01, and one system is far off."""
    systems = [str(row.system) for row in ROWS[:4]]
    nll = {systems[0]: 2.0, systems[1]: 2.01, systems[2]: 2.5, systems[3]: 2.005}
    results = []
    for number, (system, value) in enumerate(nll.items()):
        for seed in (1, 2):
            noise = 0.01 * (-1) ** (number + seed)
            score = value + 0.1 * seed + noise
            results.append(result(system, seed, score, bleu=30 + 100 * noise))
    found, _, bleu = comparison(results).partition(" By BLEU")
    names = [f"`{row.name}`" for row in ROWS[1:4]]
    assert found == (
        f"By dev nll, these rows differ from the Transformer: {names[1]}; these cannot "
        f"be told from it: {names[0]}, {names[2]}."
    )
    assert bleu.count("none; these cannot be told") == 1


def test_without_several_seeds_nothing_is_compared():
    assert comparison(RESULTS[::2]).startswith("Until several rows have several seeds")
    assert comparison(RESULTS[2:]).startswith("Until several rows have several seeds")


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
