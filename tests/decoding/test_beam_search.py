"""Compare beam search over random tables with enumeration and list search."""

from __future__ import annotations

import dataclasses

import pytest
import tensorflow as tf
from keras import ops

from t2t_repro.constants import EOS_ID
from t2t_repro.decoding.beam import beam_search
from t2t_repro.decoding.beam_state import BeamSearchOptions
from tests.support.table_search import (
    TableModel,
    all_hypotheses,
    assert_same,
    greedy,
    search_with_lists,
)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("vocab_size", [3, 4, 5])
def test_a_wide_beam_finds_all_hypotheses(vocab_size, alpha):
    limits = [4, 3, 2, 1]
    model = TableModel.random(vocab_size, 4, vocab_size, max_length=4)
    found = model.search(limits, BeamSearchOptions(64, alpha, num_hypotheses=64))
    for sentence, limit in enumerate(limits):
        expected = all_hypotheses(model, sentence, limit, alpha)
        assert_same(found[sentence], expected)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_n_best_equals_a_search_with_lists(alpha):
    limits = [6, 6, 5, 4, 1] * 6
    model = TableModel.random(10, len(limits), 5, max_length=6)
    found = model.search(limits, BeamSearchOptions(3, alpha, num_hypotheses=3))
    for sentence, limit in enumerate(limits):
        expected = search_with_lists(model, sentence, limit, alpha, beam_size=3)
        assert_same(found[sentence], expected)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
def test_stopping_early_never_changes_the_best(alpha):
    limits = [5, 7] * 30
    model = TableModel.random(20, len(limits), 5, max_length=7)
    # If ends are rare and other tokens nearly certain, a longer one may win late.
    model.logits[:, :, EOS_ID] -= 1.0
    model.logits[:, model.vocab_size :] *= 2.0
    found = model.search(limits, BeamSearchOptions(4, alpha, num_hypotheses=1))
    for sentence, limit in enumerate(limits):
        expected = search_with_lists(model, sentence, limit, alpha, beam_size=4)
        assert_same(found[sentence][:1], expected[:1])


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("limits", [[5, 7, 1, 6] * 5, [7, 2], [1], [1, 1, 1, 7]])
def test_leaving_the_batch_when_done_changes_nothing(limits, beam_size):
    model = TableModel.random(21, len(limits), 5, max_length=7)
    options = BeamSearchOptions(beam_size, 0.6, num_hypotheses=beam_size)
    expected = model.search(limits, options)
    changing = dataclasses.replace(options, static_shapes=False)
    found = model.search(limits, changing, in_graph=True)
    for sentence in range(len(limits)):
        assert_same(found[sentence], expected[sentence])


def test_sentences_that_are_done_are_not_computed_again():
    # The first and third end at once; the others never do.
    model = TableModel.random(0, 4, 4, max_length=5)
    model.logits[[0, 2], :, EOS_ID] += 30.0
    model.logits[[1, 3], :, EOS_ID] -= 30.0
    rows = []

    def step(ids, position, history, cache):
        rows.append(len(ids))
        return cache[:, :2], cache

    options = BeamSearchOptions(2, 0.6, static_shapes=False)
    limits = tf.constant([5, 5, 5, 3])
    cache = ops.convert_to_tensor(model.logits)
    beam_search(step, cache, limits, 5, options)
    assert rows == [4, 2, 2, 1, 1]


def test_the_search_stops_when_no_other_hypothesis_can_win():
    # EOS is nearly certain at once: one step suffices, whatever the limit.
    model = TableModel.random(0, 2, 4, max_length=5)
    model.logits[:, :, EOS_ID] += 30.0
    steps = []

    def step(ids, position, history, cache):
        steps.append(int(position))
        return ops.convert_to_tensor(model.logits[:, :2]), cache

    beam_search(step, (), tf.constant([5, 5]), 5, BeamSearchOptions(2, 0.6))
    assert steps == [0]


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_beam_of_one_is_greedy_search(alpha):
    limits = [6, 5, 2, 1] * 10
    model = TableModel.random(30, len(limits), 5, max_length=6)
    found = model.search(limits, BeamSearchOptions(1, alpha))
    expected = [greedy(model, n, limit) for n, limit in enumerate(limits)]
    assert [tokens for ((_, tokens),) in found] == expected


def test_hypotheses_that_never_end_are_cut_at_their_limit():
    limits = [5, 3]
    model = TableModel.random(70, 2, 6, max_length=5)
    model.logits[:, :, EOS_ID] -= 40.0
    found = model.search(limits, BeamSearchOptions(2, 0.6))
    for sentence, limit in enumerate(limits):
        expected = search_with_lists(model, sentence, limit, 0.6, beam_size=2)
        assert_same(found[sentence], expected)
        assert all(len(tokens) == limit for _, tokens in found[sentence])
