"""Constraints, prefixes and the coverage penalty, against enumeration and lists."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from t2t_repro.constants import EOS_ID
from t2t_repro.decoding.beam_state import BeamSearchOptions
from t2t_repro.decoding.coverage import coverage_penalty
from t2t_repro.decoding.next_tokens import Constraints
from tests.support.table_search import (
    TableModel,
    all_hypotheses,
    assert_same,
    greedy,
    search_with_lists,
)

LIMITS = [5, 5, 4, 3, 2]
OTHERS = (2, 3, 4)  # tokens besides PAD and EOS
# The last sentence has no prefix.
PREFIXES = np.array([[3, 3, 3, 0], [4, 0, 0, 0], [2, 4, 0, 0], [2, 0, 0, 0], [0] * 4])


def repeats(tokens, size):
    """Whether the last n-gram of tokens occurred before."""
    ngrams = [tuple(tokens[n : n + size]) for n in range(len(tokens) - size + 1)]
    return ngrams != [] and ngrams[-1] in ngrams[:-1]


def rule_of(constraints, prefix=()):
    """Return whether a token may follow others, as a loop would decide."""

    def may_follow(tokens, token):
        if len(tokens) < len(prefix) and prefix[len(tokens)] != 0:
            return token == prefix[len(tokens)]
        size = constraints.no_repeat_ngram_size
        if token == EOS_ID:
            none_left = size and all(repeats([*tokens, t], size) for t in OTHERS)
            return len(tokens) >= constraints.min_length or none_left
        return size == 0 or not repeats([*tokens, token], size)

    return may_follow


CONSTRAINTS = [
    Constraints(min_length=3),
    Constraints(no_repeat_ngram_size=1),
    Constraints(no_repeat_ngram_size=2),
    Constraints(no_repeat_ngram_size=9),  # longer than any hypothesis
    # After all three tokens, only EOS is left.
    Constraints(min_length=4, no_repeat_ngram_size=1),
    Constraints(min_length=2, no_repeat_ngram_size=2),
]


@pytest.fixture(scope="module")
def model():
    return TableModel.random(3, len(LIMITS), 5, max_length=5)


@pytest.mark.parametrize("constraints", CONSTRAINTS, ids=str)
def test_a_wide_beam_finds_all_hypotheses_that_are_allowed(model, constraints):
    options = BeamSearchOptions(200, 0.6, 200, constraints=constraints)
    for sentence, found in enumerate(model.search(LIMITS, options)):
        expected = all_hypotheses(
            model, sentence, LIMITS[sentence], 0.6, rule_of(constraints)
        )
        if expected:
            assert_same(found, expected)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("constraints", [*CONSTRAINTS, None], ids=str)
def test_prefixes_and_constraints_equal_a_search_with_lists(
    model, constraints, beam_size, static
):
    in_graph = not static and constraints == CONSTRAINTS[-1]
    options = BeamSearchOptions(
        beam_size, 0.6, beam_size, static_shapes=static, constraints=constraints
    )
    found = model.search(
        LIMITS,
        options,
        in_graph=in_graph,
        per_row={"prefixes": PREFIXES.astype("int32")},
    )
    for sentence, limit in enumerate(LIMITS):
        rule = rule_of(constraints or Constraints(), PREFIXES[sentence])
        if beam_size > 1:
            expected = search_with_lists(model, sentence, limit, 0.6, beam_size, rule)
            assert_same(found[sentence], expected)
        else:
            assert [t for _, t in found[sentence]] == [
                greedy(model, sentence, limit, rule)
            ]


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_hypothesis_ends_early_if_nothing_else_is_allowed(beam_size):
    # The only token besides PAD and EOS is 2.
    model = TableModel.random(5, 1, 3, max_length=5)
    constraints = Constraints(min_length=4, no_repeat_ngram_size=1)
    options = BeamSearchOptions(beam_size, 0.6, beam_size, constraints=constraints)
    (found,) = model.search([5], options)
    assert [tokens for _, tokens in found] == [[2, EOS_ID]]
    expected = model.log_probs(0, [])[2] + model.log_probs(0, [2])[EOS_ID]
    assert found[0][0] == pytest.approx(expected / (7 / 6) ** 0.6, abs=1e-5)


@pytest.mark.parametrize("static", [True, False])
def test_a_minimum_above_the_limit_leaves_what_can_be_cut_there(static):
    """The only token besides PAD and EOS is 2, so two of three places are empty."""
    model = TableModel.random(5, 1, 3, max_length=4)
    constraints = Constraints(min_length=9)
    options = BeamSearchOptions(
        3, 0.6, 3, static_shapes=static, constraints=constraints
    )
    (found,) = model.search([4], options)
    expected = sum(model.log_probs(0, [2] * n)[2] for n in range(4))
    assert_same(found, [(expected / (9 / 6) ** 0.6, [2, 2, 2, 2])])


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("constraints", [CONSTRAINTS[-1], None], ids=str)
def test_a_whole_prefix_leaves_one_hypothesis_and_empty_places(
    model, constraints, static
):
    """A prefix is whole if it ends in EOS, or if it reaches the limit."""
    options = BeamSearchOptions(
        3, 0.6, 3, static_shapes=static, constraints=constraints
    )
    prefixes = np.array([[3, EOS_ID, 0], [EOS_ID, 0, 0], [3, 2, 0], [4, 4, 0]], "int32")
    limits = [5, 5, 5, 2]
    four = TableModel(model.logits[:4], 5)
    found = four.search(limits, options, per_row={"prefixes": prefixes})
    for sentence, prefix in ((0, [3, EOS_ID]), (1, [EOS_ID]), (3, [4, 4])):
        log_probs = (
            four.log_probs(sentence, prefix[:n])[t] for n, t in enumerate(prefix)
        )
        score = sum(log_probs) / ((5 + len(prefix)) / 6) ** 0.6
        assert_same(found[sentence], [(score, prefix)])
    rule = rule_of(constraints or Constraints(), prefixes[2])
    assert_same(found[2], search_with_lists(four, 2, 5, 0.6, 3, rule))
    assert len(found[2]) == 3


def with_attention(model, source_length=4):
    shape = (*model.logits.shape[:2], source_length)
    weights = np.random.default_rng(7).gamma(0.3, size=shape)
    weights /= weights.sum(axis=-1, keepdims=True)
    return dataclasses.replace(model, attention=weights.astype("float32"))


@pytest.mark.parametrize("beta", [0.2, 3.0])
def test_the_coverage_penalty_ranks_all_hypotheses_by_equation_14(model, beta):
    attending = with_attention(model)
    options = BeamSearchOptions(200, 0.6, 200, coverage_penalty=beta)
    plain = model.search(LIMITS, BeamSearchOptions(200, 0.6, 200))
    changed = 0
    for sentence, found in enumerate(attending.search(LIMITS, options)):
        limit = LIMITS[sentence]
        expected = all_hypotheses(attending, sentence, limit, 0.6, beta=beta)
        assert_same(found, expected)
        changed += found[0][1] != plain[sentence][0][1]
    assert changed


def test_a_token_without_attention_has_a_finite_penalty():
    found = float(coverage_penalty(np.zeros(1, "float32"), 1.0))
    assert -100.0 < found < -50.0


@pytest.mark.parametrize(
    ("static", "in_graph"), [(True, False), (False, False), (False, True)]
)
@pytest.mark.parametrize("num_hypotheses", [1, 3])
def test_coverage_follows_its_hypothesis(model, static, in_graph, num_hypotheses):
    attending = with_attention(TableModel(model.logits.copy(), 5))
    # Some sentences never end, so they are cut.
    attending.logits[1:3, :, EOS_ID] -= 30.0
    options = BeamSearchOptions(
        3, 0.6, num_hypotheses, static_shapes=static, coverage_penalty=2.0
    )
    found = attending.search(LIMITS, options, in_graph=in_graph)
    for sentence, limit in enumerate(LIMITS):
        expected = search_with_lists(attending, sentence, limit, 0.6, 3, beta=2.0)
        best = slice(num_hypotheses)
        assert_same(found[sentence][best], expected[best])


@pytest.mark.parametrize("static", [True, False])
def test_the_coverage_of_a_sentence_that_is_done_stays(static):
    """One of nine rows is done after two steps, and too few are to leave the batch."""
    limits = [2, *[5] * 8]
    attending = with_attention(TableModel.random(12, len(limits), 6, max_length=5))
    attending.logits[:, :, EOS_ID] -= 40.0  # all are cut
    options = BeamSearchOptions(2, 0.6, 2, static_shapes=static, coverage_penalty=2.0)
    found = attending.search(limits, options)
    for sentence, limit in enumerate(limits):
        expected = search_with_lists(attending, sentence, limit, 0.6, 2, beta=2.0)
        assert_same(found[sentence], expected)
        assert len(found[sentence][0][1]) == limit


def test_xla_gives_the_same_answers(model):
    options = BeamSearchOptions(
        3,
        0.6,
        3,
        constraints=Constraints(min_length=2, no_repeat_ngram_size=2),
        coverage_penalty=0.7,
    )
    rows = {"prefixes": PREFIXES.astype("int32")}
    attending = with_attention(model)
    compiled = attending.search(LIMITS, options, per_row=rows, jit_compile=True)
    plain = attending.search(LIMITS, options, per_row=rows)
    for found, expected in zip(compiled, plain, strict=True):
        assert_same(found, expected)
