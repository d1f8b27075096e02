from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")

from scipy import stats

from results.form_differences import (
    difference_texts,
    differences_table,
)
from results.form_runs import Repeat, scores_by_block
from tests.support.form_runs import (
    AROUND,
    AROUND_NLL,
    CURVES,
    PLAIN,
    PLAIN_NLL,
    RESULTS,
    ROWS,
    SEVERAL,
    SHARED,
    result,
    table_rows,
)


def cells(
    row: str, results=SEVERAL, curves=CURVES, repeats=(), reference="transformer"
) -> dict[str, str]:
    """Map the headings to the cells of a row; empty if the table lacks the row."""
    rows = table_rows(differences_table(results, curves, repeats, reference))
    return next((found for found in rows if found["row"] == f"`forms/{row}`"), {})


def test_differences_are_those_of_the_model_of_systems_and_seeds():
    """Two rows have all seeds, so the differences per seed are a paired test."""
    paired = stats.ttest_rel(AROUND_NLL, PLAIN_NLL)
    low, high = paired.confidence_interval(0.95)
    found = cells("around")
    assert float(found["nll, p"].strip("*")) == pytest.approx(paired.pvalue, abs=5e-4)
    assert found["nll, difference"] == f"+0.138 ({low:+.3f} to {high:+.3f})"
    assert float(cells("shared")["nll, p"].strip("*")) < 1
    assert found["BLEU, p"] != found["nll, p"]


def test_differences_from_another_row_have_the_opposite_sign():
    value, _, rest = cells("around")["nll, difference"].partition(" ")
    low, _, high = rest.strip("()").partition(" to ")
    found = cells("transformer", reference="around")["nll, difference"]
    assert value.startswith("+")
    opposite = {"+": "-", "-": "+"}
    value, low, high = (opposite[x[0]] + x[1:] for x in (value, low, high))
    assert found == f"{value} ({high} to {low})"


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
    assert float(found["nll, p"].strip("*")) == pytest.approx(paired, abs=5e-4)


def test_a_repeat_of_a_system_without_results_does_not_count():
    repeat = Repeat(SHARED, 1, {"nll (dev)": 1.5})
    assert scores_by_block(RESULTS[:1], "nll (dev)", [repeat]) == {
        PLAIN: {(False, 1): 2.0}
    }


def test_without_several_seeds_there_is_no_difference():
    for few in (RESULTS, RESULTS[::2], SEVERAL[5:], SEVERAL[1:]):
        assert not {"nll, p", "BLEU, difference"} & cells("around", few).keys()


def test_only_what_the_noise_tells_apart_is_bold():
    """Two seeds of five systems; the noise is 0.01, and one system is far off."""
    systems = [str(row.system) for row in ROWS[:5]]
    nll = dict(zip(systems, [2.0, 2.01, 2.5, 2.005, 2.0], strict=True))
    results = []
    for number, (system, value) in enumerate(nll.items()):
        for seed in (1, 2):
            noise = 0.01 * (-1) ** (number + seed)
            score = value + 0.1 * seed + noise
            results.append(result(system, seed, score, bleu=30 + 100 * noise))
    names = [str(row.name) for row in ROWS[:5]]
    for reference in (names[0], names[2]):
        marked = {
            name: cells(name, results, reference=reference)["nll, p"].startswith("**")
            for name in names
            if name != reference
        }
        assert marked == {name: names[2] in (name, reference) for name in marked}
    assert not cells(names[2], results)["BLEU, p"].startswith("**")


def test_a_difference_is_written_as_a_text():
    found = difference_texts(SEVERAL, (), "around", "transformer")
    row = cells("around")
    start, _, interval = row["nll, difference"].partition(" (")
    assert found["nll"] == (
        f"{start} (95 % interval {interval[:-1]}, p = {row['nll, p'].strip('*')}, "
        f"detectable {row['nll, detectable']})"
    )
    assert found["BLEU"].startswith(row["BLEU, difference"].split()[0])
    few = difference_texts(RESULTS, (), "around", "transformer")
    assert few == {"nll": "not yet measured", "BLEU": "not yet measured"}


def test_updates_are_those_of_the_seeds_that_both_have():
    """Seed 1: 200 against 150 updates; seed 2: 200 against 175."""
    expected = ((200 / 150) * (200 / 175)) ** 0.5
    assert cells("around")["updates"] == f"{expected:.2f}"
    assert cells("shared")["updates"] == ""


def test_updates_on_other_hardware_are_the_mean_of_all_pairs():
    """200 updates of each against 150, 175 and 200, with both runs of the other."""
    other = [
        dataclasses.replace(x, versions={"jax": "1"}) if "around" in x.name else x
        for x in CURVES
    ]
    expected = ((200 / 150) * (200 / 175)) ** (1 / 3)
    found = cells("around", curves=other)["updates"]
    assert found == f"{expected:.2f} (all pairs)"


def test_curves_of_another_scale_do_not_count():
    small = [
        dataclasses.replace(x, name=x.name.replace("long", "small")) for x in CURVES
    ]
    assert "updates" not in cells("around", curves=small)
