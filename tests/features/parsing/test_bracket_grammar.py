"""A search inside a grammar, against the enumeration of all trees."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
import pytest

from t2t_repro.constants import EOS_ID, NO_WORD
from t2t_repro.decoding.beam_state import BeamSearchOptions, expected_costs
from t2t_repro.decoding.next_tokens import Constraints
from t2t_repro.features.parsing.bracket_grammar import BracketGrammar
from tests.support.table_search import (
    TableModel,
    all_hypotheses,
    assert_same,
    greedy,
    search_with_lists,
)

OPENS_A, OPENS_B, CLOSES_B, CLOSES_A = 3, 2, 5, 4
# Tokens 6 and 7 are leaves: 6 of words of both kinds, 7 only of words of kind 1.
LEAVES = ((6,), (7, 6))
GRAMMAR = BracketGrammar(
    brackets=((OPENS_A, CLOSES_A), (OPENS_B, CLOSES_B)),
    leaves=LEAVES,
    kind_by_byte=(0,) * 256,
)
WORDS = [[0, 1], [], [1], [0, 0, 1], [1, 1]]
# The second to last leaves room for leaves alone, the last for one constituent.
LIMITS = [6, 3, 6, 4, 5]
EVERY = range(5)


def is_tree(tokens, words):
    """Read tokens with a stack, as one would on paper."""
    closes = {OPENS_A: CLOSES_A, OPENS_B: CLOSES_B}
    inside, left, before = [], list(words), None
    for token in tokens:
        if token in closes:
            inside.append(closes[token])
        elif token in closes.values():
            if before in closes or not inside or inside.pop() != token:
                return False
        elif not left or token not in LEAVES[left.pop(0)]:
            return False
        before = token
    return not inside and not left


@functools.cache
def beginnings(sentence):
    found = set()
    for length in range(LIMITS[sentence]):
        for tokens in itertools.product(range(2, 8), repeat=length):
            if is_tree(tokens, WORDS[sentence]):
                whole = (*tokens, EOS_ID)
                found |= {whole[:n] for n in range(length + 2)}
    return found


def rule_of(sentence):
    return lambda tokens, token: (*tokens, token) in beginnings(sentence)


def word_kinds():
    rows = np.full((len(WORDS), 4), NO_WORD, "int32")
    for row, words in zip(rows, WORDS, strict=True):
        row[: len(words)] = words
    return rows


def search(
    model,
    beam_size,
    *,
    wanted=None,
    static=False,
    in_graph=False,
    numbers=EVERY,
    **options,
):
    options = {"constraints": Constraints(grammar=GRAMMAR)} | options
    wanted = wanted or beam_size
    return model.search(
        [LIMITS[n] for n in numbers],
        BeamSearchOptions(beam_size, 0.6, wanted, static_shapes=static, **options),
        in_graph=in_graph,
        per_row={"word_kinds": word_kinds()[list(numbers)]},
    )


@pytest.fixture(scope="module")
def model():
    return TableModel.random(5, len(WORDS), 8, max_length=6)


@pytest.fixture(scope="module")
def wide(model):
    return search(model, 150)


def test_a_wide_beam_finds_every_tree_and_nothing_else(model, wide):
    for sentence, found in enumerate(wide):
        expected = all_hypotheses(
            model, sentence, LIMITS[sentence], 0.6, rule_of(sentence)
        )
        assert len(expected) == [14, 1, 14, 2, 28][sentence]
        assert_same(found, expected)


@pytest.mark.parametrize("leaves", [((6,), (7,)), ((7,), (6,))])
def test_the_leaves_of_the_words_are_those_of_their_kinds_in_order(model, leaves):
    grammar = dataclasses.replace(GRAMMAR, leaves=leaves)
    trees = search(model, 150, constraints=Constraints(grammar=grammar))
    for words, found in zip(WORDS, trees, strict=True):
        assert found
        for _, tokens in found:
            written = [token for token in tokens if token in (6, 7)]
            assert written == [leaves[kind][0] for kind in words]


@pytest.mark.parametrize(
    ("beam_size", "how"),
    [(2, {"static": True}), (2, {"in_graph": True}), (5, {})],
)
def test_a_beam_holds_the_beginnings_of_trees_alone(model, beam_size, how):
    for sentence, found in enumerate(search(model, beam_size, **how)):
        expected = search_with_lists(
            model, sentence, LIMITS[sentence], 0.6, beam_size, rule_of(sentence)
        )
        assert_same(found, expected)


def test_greedy_search_takes_the_best_token_that_leads_to_a_tree(model):
    for sentence, found in enumerate(search(model, 1)):
        expected = greedy(model, sentence, LIMITS[sentence], rule_of(sentence))
        assert [tokens for _, tokens in found] == [expected]


def test_the_cost_left_is_that_of_the_words_without_a_leaf():
    written = GRAMMAR.words_written(8)
    assert written.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
    ids = np.array([[[OPENS_A, 6, 0], [OPENS_A, OPENS_B, 0]], [[6, 7, 0], [7, 1, 0]]])
    word_kinds = np.array([[0, 1, NO_WORD], [0, NO_WORD, NO_WORD]])
    found = expected_costs(
        written, 1.5, ids.astype("int32"), word_kinds.astype("int32")
    )
    assert np.array(found).tolist() == [[1.5, 3.0], [-1.5, 0.0]]


def lists_with_cost(model, sentence, beam_size, word_cost, rule, limit):
    def cost(tokens):
        return word_cost * (len(WORDS[sentence]) - sum(t in (6, 7) for t in tokens))

    return search_with_lists(model, sentence, limit, 0.6, beam_size, rule, cost=cost)


@pytest.mark.parametrize(("beam_size", "how"), [(2, {"static": True}), (3, {})])
def test_a_beam_ranks_by_the_words_that_lack_a_leaf(model, beam_size, how):
    without = search(model, beam_size)
    with_cost = search(model, beam_size, word_cost=1.7, **how)
    assert with_cost != without
    for sentence, found in enumerate(with_cost):
        expected = lists_with_cost(
            model, sentence, beam_size, 1.7, rule_of(sentence), LIMITS[sentence]
        )
        assert_same(found, expected)


def test_a_search_goes_on_while_any_hypothesis_can_become_the_best():
    best = [OPENS_A, OPENS_A, 6, CLOSES_A, CLOSES_A, EOS_ID]
    logits = np.zeros((1, 8**5, 8), "float32")
    model = TableModel(logits, max_length=6)
    logits[0, 0] = -20.0
    logits[0, 0, [OPENS_A, 6, OPENS_B]] = [2.0, 1.5, 0.0]
    for tokens in (best, [6, EOS_ID], [OPENS_B, 7]):
        for length in range(1, len(tokens)):
            logits[0, model.row(tokens[:length]), tokens[length]] = 20.0
    # After two steps, a leaf alone is finished. Of the others, the least probable has
    # the best rank, because it has its leaf.
    (found,) = search(model, 3, wanted=1, numbers=[2], word_cost=10.0)
    assert found[0][1] == best


def test_the_cost_of_words_changes_no_score_of_a_whole_tree(model, wide):
    with_cost = search(model, 150, word_cost=1e4)
    for found, expected in zip(with_cost, wide, strict=True):
        assert_same(found, expected)


def test_only_words_of_a_grammar_have_a_cost(model):
    with pytest.raises(ValueError, match="`word_cost` needs constraints with a gramm"):
        search(model, 2, word_cost=1.7, constraints=None)


def test_trees_that_are_cut_are_sorted_by_score_and_not_by_rank(model):
    # Too late for a whole tree: after an opening token, two more tokens are left.
    forced = [OPENS_A, 6]

    def rule(tokens, token):
        if len(tokens) < len(forced):
            return token == forced[len(tokens)]
        left = [0, 0, 1][sum(t == 6 for t in tokens) :]
        return token in LEAVES[left[0]] or (CLOSES_A not in tokens and token == 4)

    (found,) = model.only(3).search(
        [4],
        BeamSearchOptions(
            3,
            0.6,
            3,
            constraints=Constraints(grammar=GRAMMAR),
            word_cost=1.7,
        ),
        per_row={
            "word_kinds": word_kinds()[[3]],
            "prefixes": np.array([[*forced, 0]], "int32"),
        },
    )
    expected = lists_with_cost(model, 3, 3, 1.7, rule, 4)
    assert_same(found, expected)


def test_a_sentence_alone_has_the_trees_that_it_has_in_a_batch(model):
    together = search(model, 3)
    for sentence in (1, 2):
        (found,) = search(model.only(sentence), 3, numbers=[sentence])
        assert_same(found, together[sentence])


@pytest.mark.parametrize(
    "others", [{"min_length": 6}, {"no_repeat_ngram_size": 1}], ids=str
)
def test_other_constraints_give_way_to_the_grammar(model, others):
    constraints = Constraints(grammar=GRAMMAR, **others)
    found = search(model, 3, constraints=constraints)
    for sentence, hypotheses in enumerate(found):
        assert hypotheses
        assert all(is_tree(t[:-1], WORDS[sentence]) for _, t in hypotheses)
        assert all(t[-1] == EOS_ID for _, t in hypotheses)


def test_no_token_is_repeated_where_the_grammar_leaves_another(model):
    # Of two words of kind 1, the second can have the other leaf.
    constraints = Constraints(grammar=GRAMMAR, no_repeat_ngram_size=1)
    found = search(model, 1, constraints=constraints)[4]
    leaves = [token for token in found[0][1] if token in (6, 7)]
    assert sorted(leaves) == [6, 7]


@pytest.mark.parametrize(
    "forced", [[CLOSES_A], [7, 6, 7, OPENS_B], [OPENS_B, CLOSES_A]]
)
def test_a_prefix_outside_the_grammar_still_has_an_end(model, forced):
    prefixes = np.zeros((1, len(forced) + 1), "int32")
    prefixes[0, :-1] = forced
    (found,) = model.only(2).search(
        [6],
        BeamSearchOptions(3, 0.6, 3, constraints=Constraints(grammar=GRAMMAR)),
        per_row={"word_kinds": word_kinds()[[2]], "prefixes": prefixes},
    )
    assert found
    for _, tokens in found:
        assert tokens[: len(forced)] == forced
        assert tokens[-1] == EOS_ID
