"""Random tokens and translations, against exact distributions."""

from __future__ import annotations

import numpy as np
import pytest

from t2t_repro.constants import PAD_ID
from t2t_repro.decoding.beam_state import BeamSearchOptions
from t2t_repro.decoding.next_tokens import Constraints, Sampling, sample
from t2t_repro.decoding.source_pieces import uniform_numbers
from tests.support.table_search import TableModel, all_hypotheses

DRAWS = 20_000
LOGITS = np.array([5.0, 0.3, 1.2, -1.0, 1.1, 0.1, -2.0, 0.6], "float32")
# Of the chi-square distribution, by degrees of freedom, at probability 0.999.
CRITICAL = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52, 6: 22.46}


def probabilities(sampling, forbidden=()):
    """Return the distribution over tokens, by sorting."""
    logits = LOGITS.astype("float64") / sampling.temperature
    logits[[PAD_ID, *forbidden]] = -np.inf
    order = np.argsort(-logits)
    if sampling.top_k > 0:
        logits[order[sampling.top_k :]] = -np.inf
    p = np.exp(logits) / np.exp(logits).sum()
    needed = int(np.searchsorted(np.cumsum(p[order]), sampling.top_p)) + 1
    p[order[needed:]] = 0.0
    return p / p.sum()


def draw(sampling, forbidden=None):
    uniform = np.random.default_rng(1).random(DRAWS)
    logits = np.tile(LOGITS, (DRAWS, 1))
    tokens, log_probs = sample(logits, uniform, sampling, forbidden)
    return np.array(tokens), np.array(log_probs)


def chi_square(counts, p):
    expected = p[p > 0] * counts.sum()
    return float(((counts[p > 0] - expected) ** 2 / expected).sum())


CASES = [
    Sampling(),
    Sampling(temperature=0.5),
    Sampling(temperature=2.0),
    Sampling(top_k=3),
    Sampling(top_k=1),
    Sampling(top_k=100),
    Sampling(top_p=0.85),
    Sampling(top_p=0.01),
    Sampling(temperature=1.7, top_k=5, top_p=0.8),
]


@pytest.mark.parametrize("sampling", CASES, ids=str)
def test_tokens_have_the_distribution_of_the_settings(sampling):
    p = probabilities(sampling)
    tokens, log_probs = draw(sampling)
    own = LOGITS - np.log(np.exp(LOGITS).sum())  # whatever the settings
    np.testing.assert_allclose(log_probs, own[tokens], atol=1e-5)
    counts = np.bincount(tokens, minlength=len(LOGITS))
    assert not counts[p == 0].any()
    degrees = int((p > 0).sum()) - 1
    assert degrees == 0 or chi_square(counts, p) < CRITICAL[degrees]


@pytest.mark.parametrize(
    ("top_p", "count"), [(0.25, 1), (0.5, 2), (0.75, 3), (0.7500001, 4), (0.4999999, 2)]
)
def test_no_more_tokens_are_drawn_than_sum_to_top_p_exactly(top_p, count):
    """Four tokens of probability 1/4, whose sums are exact."""
    logits = np.zeros((64, 5), "float32")
    uniform = np.arange(64) / 64
    tokens, _ = sample(logits, uniform, Sampling(top_p=top_p))
    drawn, counts = np.unique(np.array(tokens), return_counts=True)
    assert PAD_ID not in drawn
    assert len(drawn) == count
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    "sampling", [Sampling(top_p=1e-320), Sampling(temperature=1e-320)], ids=str
)
def test_the_best_token_is_drawn_at_the_smallest_settings(sampling):
    # PAD, the greatest of the logits, is never drawn.
    assert set(draw(sampling)[0]) == {np.argsort(-LOGITS)[1]}


def test_forbidden_tokens_are_never_drawn():
    mask = np.isin(np.arange(len(LOGITS)), [2, 4])[None, :]
    p = probabilities(Sampling(top_k=3), forbidden=[2, 4])
    counts = np.bincount(draw(Sampling(top_k=3), mask)[0], minlength=len(LOGITS))
    assert not counts[p == 0].any()
    assert chi_square(counts, p) < CRITICAL[2]


@pytest.mark.parametrize("sampling", CASES, ids=str)
def test_the_least_and_greatest_random_number_give_a_token(sampling):
    uniform = np.array([0.0, np.nextafter(1.0, 0.0)])
    tokens, _ = sample(np.tile(LOGITS, (2, 1)), uniform, sampling)
    assert (probabilities(sampling)[np.array(tokens)] > 0).all()


def test_random_numbers_depend_on_seed_sentence_and_piece():
    numbers = {
        tuple(uniform_numbers(*case, 3))
        for case in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 1, 0)]
    }
    assert len(numbers) == 5


def test_a_longer_translation_begins_with_the_same_random_numbers():
    np.testing.assert_array_equal(
        uniform_numbers(3, 4, 5, 50)[:7], uniform_numbers(3, 4, 5, 7)
    )


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("min_length", [0, 2])
def test_translations_have_the_distribution_of_the_model(static, min_length):
    one = TableModel.random(11, 1, 4, max_length=3)
    one.logits[:, :, PAD_ID] -= 30.0  # the model itself writes no PAD
    model = TableModel(np.repeat(one.logits, DRAWS, axis=0), 3)
    uniform = np.stack([uniform_numbers(9, n, 0, 3) for n in range(DRAWS)])
    constraints = Constraints(min_length=min_length) if min_length else None
    options = BeamSearchOptions(
        1, 0.0, static_shapes=static, sampling=Sampling(), constraints=constraints
    )
    rows = {"uniform": uniform}
    found = model.search([3] * DRAWS, options, in_graph=not static, per_row=rows)
    counts: dict[tuple[int, ...], int] = {}
    for ((score, tokens),) in found:
        own = sum(one.log_probs(0, tokens[:n])[t] for n, t in enumerate(tokens))
        assert score == pytest.approx(own, abs=1e-4)
        counts[tuple(tokens)] = counts.get(tuple(tokens), 0) + 1
    expected = {
        tuple(tokens): np.exp(score)
        for score, tokens in all_hypotheses(one, 0, 3, 0.0)
        if len(tokens) > min_length
    }
    if min_length:
        # EOS was forbidden twice, so the other tokens share its probability.
        for tokens in expected:
            for n in range(min_length):
                left = 1.0 - np.exp(one.log_probs(0, list(tokens[:n]))[1])
                expected[tokens] /= left
    total = sum(counts.values())
    for tokens, p in expected.items():
        deviation = (p * (1 - p) / total) ** 0.5
        assert counts.get(tokens, 0) / total == pytest.approx(p, abs=4 * deviation)
