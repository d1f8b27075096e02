"""Comparisons of two rows are tests of the runs that they name."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("scipy", reason="the extra `results` is not installed")
from scipy import stats

from results import weighted_pairs
from results.form_runs import BLEU, CONTROL, PLAIN, WEIGHTED, Repeat, system_of
from t2t_repro.features.reproduction.result_files import averaged_score
from tests.support.form_runs import result

READING, TRANSFORMER, BARE = map(system_of, (WEIGHTED, CONTROL, PLAIN))
# BLEU by seed, from seed 1 on; `result` adds one to that of dev and test together.
LAST = {
    READING: (33.5, 34.25, 33.75, 34.0, 34.5, 33.5),
    TRANSFORMER: (34.0, 34.5, 34.5, 33.75, 35.0, 34.25),
}
AVERAGED = (34.5, 34.75, 34.25, 35.0, 35.5, 35.0)


def runs(system, values):
    return [
        result(system, seed, 2.0 + 0.01 * value, bleu=value)
        for seed, value in enumerate(values, 1)
    ]


ON_CPUS = [run for system, values in LAST.items() for run in runs(system, values)]


def interval(own, other):
    test = stats.ttest_rel(own, other)
    low, high = test.confidence_interval()
    return f"interval {low:+.2f} to {high:+.2f}, p = {test.pvalue:.3f}"


def test_pairs_on_cpus_are_students_test_without_the_accelerator():
    accelerated = [
        dataclasses.replace(run, versions={"jax": "1"})
        for run in (result(READING, 9, 9.0), result(TRANSFORMER, 9, 2.0))
    ]
    found = weighted_pairs.values([*ON_CPUS, *accelerated], (), ())
    assert interval(*LAST.values()) in found["cpu_pairs"]["BLEU"]


def test_the_runs_seen_before_the_choice_are_those_of_the_first_seed_on_a_cpu():
    found = weighted_pairs.values(ON_CPUS, (), ())
    own, other = LAST.values()
    # The Transformer with attention dropout came later; its first run has no partner.
    assert interval(own[1:], other[1:]) in found["unseen"]["BLEU"]


def test_only_the_transformer_is_averaged_as_in_the_printed_comparison():
    averaged = [
        dataclasses.replace(
            run, scores={**run.scores, BLEU: 0.0, averaged_score(BLEU): value + 1}
        )
        for run, value in zip(runs(BARE, LAST[TRANSFORMER]), AVERAGED, strict=True)
    ]
    found = weighted_pairs.printed_comparison([*ON_CPUS, *averaged])
    assert interval(LAST[READING], AVERAGED) in found


def test_lower_pairs_have_one_seed_and_one_peak():
    twice = [
        result(f"{system}-peak2", 1, 2.0, bleu=value)
        for system, value in ((READING, 36.0), (TRANSFORMER, 37.0))
    ]
    found = weighted_pairs.lower_pairs(ON_CPUS, (), twice, BLEU, ("own", "twice"))
    assert found == "6 of 7 pairs (mean difference -0.50)"
    found = weighted_pairs.lower_pairs(ON_CPUS, (), twice, BLEU, ("twice",))
    assert found == "1 of 1 pairs (mean difference -1.00)"


def test_a_run_without_averaged_checkpoints_is_in_no_pair():
    repeats = [Repeat(system, 7, {BLEU: 30.0}) for system in LAST]
    score = averaged_score(BLEU)
    found = weighted_pairs.lower_pairs(ON_CPUS, repeats, (), score, ("own",))
    assert found == "5 of 6 pairs (mean difference -0.42)"
