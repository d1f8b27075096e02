"""The best hypothesis by minimum Bayes risk equals brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from t2t_repro.decoding.hypothesis import (
    Hypothesis,
    rank_by_expected_similarity,
    with_consensus,
)

TEXTS = ["a", "b", "c", "d", "e"]


def hypotheses(*scores):
    return [Hypothesis(t, s) for t, s in zip(TEXTS, scores, strict=False)]


def ranked(given, scale, table):
    seen = []

    def similarities(outputs):
        seen.append(list(outputs))
        return table

    found = rank_by_expected_similarity(given, scale, similarities)
    assert seen == [[hypothesis.text for hypothesis in given]]
    return "".join(hypothesis.text for hypothesis in found)


@pytest.mark.parametrize("scale", [0.0, 0.7, 1.0, 40.0])
@pytest.mark.parametrize("seed", range(4))
def test_expected_similarities_are_a_matrix_times_the_probabilities(scale, seed):
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.normal(-5, 1, 5))[::-1]
    table = rng.uniform(0, 100, (5, 5))
    probabilities = np.exp(scale * scores) / np.exp(scale * scores).sum()
    expected = "".join(TEXTS[n] for n in np.argsort(-(table @ probabilities)))
    assert ranked(hypotheses(*scores), scale, table.tolist()) == expected


def test_two_similar_hypotheses_outvote_a_more_probable_one():
    given = hypotheses(*np.log([0.4, 0.3, 0.3]))
    table = [[100, 0, 0], [0, 100, 80], [0, 70, 100]]
    assert ranked(given, 1.0, table) == "bca"
    assert ranked(given, 3.0, table) == "abc"
    # Of equal ones, the first; rows are outputs, and columns truths.
    assert ranked(given, 1.0, [[5, 5, 5]] * 3) == "abc"
    assert ranked(given[:2], 1.0, [[100, 0], [90, 100]]) == "ba"
    assert ranked(given[:1], 1.0, [[100.0]]) == "a"


def test_very_improbable_hypotheses_have_finite_weights():
    given = hypotheses(-5000.0, -5000.0 + math.log(0.5))
    assert ranked(given, 1.0, [[100, 0], [60, 100]]) == "ba"


def test_a_consensus_replaces_the_first_text_and_gets_the_weights_of_all():
    seen = []

    def consensus(texts, weights):
        seen.append((list(texts), np.array(weights) / sum(weights)))
        return "agreed"

    first, second = (
        Hypothesis("b", math.log(0.2), ("fault",), (4, 1)),
        Hypothesis("a", math.log(0.6), (), (3, 1)),
    )
    found = with_consensus([first, second], 2.0, consensus)
    assert found == [Hypothesis("agreed", first.score), second]
    ((texts, shares),) = seen
    assert texts == ["b", "a"]
    np.testing.assert_allclose(shares, [0.1, 0.9])  # 0.2^2 and 0.6^2


def test_a_consensus_that_is_the_first_hypothesis_keeps_its_ids():
    first, second = Hypothesis("b", -1.0, ("fault",), (4, 1)), Hypothesis("a", -2.0)
    assert with_consensus([first, second], 1.0, lambda *_: "b") == [first, second]
