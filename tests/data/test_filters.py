from __future__ import annotations

import random
from collections.abc import Collection

import numpy as np
import pytest

from t2t_repro.data import filters
from t2t_repro.data.encoding import EncodedBatch, pair_digests
from t2t_repro.data.filters import DigestSet, PairFilter, contains
from t2t_repro.settings.prepare_settings import PrepareSettings

PAIR = ("a", "b")


def training(held_out: Collection[int] = (), **settings) -> PairFilter:
    return PairFilter(PrepareSettings(**settings), "train", held_out)


def evaluation(**settings) -> PairFilter:
    return PairFilter(PrepareSettings(**settings), "dev")


def kept(pair_filter, pair, source_ids, target_ids) -> bool:
    """Filter a batch of one pair, whose ids lack the end of sentence."""
    batch = EncodedBatch(
        digests=pair_digests([pair]),
        is_empty=np.array([not source_ids or not target_ids]),
        lengths=np.array([[len(source_ids) + 1], [len(target_ids) + 1]]),
        copies=np.array([1]),
        # The filters do not read them.
        written_lengths=np.empty((2, 0)),
        records=[],
    )
    (found,) = pair_filter.kept(batch)
    return bool(found)


def test_a_good_pair_is_kept_and_not_counted():
    pair_filter = training()
    assert kept(pair_filter, PAIR, [5], [6])
    assert pair_filter.dropped == {}


def test_an_empty_side_is_counted():
    pair_filter = training()
    assert not kept(pair_filter, PAIR, [], [6])
    assert not kept(pair_filter, PAIR, [5], [])
    assert pair_filter.dropped == {"empty_side": 2}


def test_the_longest_length_counts_the_end_of_sentence():
    pair_filter = training(max_pair_length=4)
    assert kept(pair_filter, PAIR, [5] * 3, [6])
    assert not kept(pair_filter, PAIR, [5], [6] * 4)
    assert pair_filter.dropped == {"too_long": 1}


def test_a_ratio_is_kept_up_to_the_limit():
    pair_filter = training(max_length_ratio=2.0)
    assert kept(pair_filter, PAIR, [5] * 4, [6] * 2)
    assert not kept(pair_filter, PAIR, [5] * 2, [6] * 5)
    assert pair_filter.dropped == {"length_ratio": 1}


def test_every_ratio_is_accepted_by_default():
    assert kept(training(), PAIR, [5], [6] * 200)


def test_a_repeat_is_counted_on_request():
    pair_filter = training(drop_duplicates=True)
    pairs = (PAIR, PAIR, ("a", "c"))
    found = [kept(pair_filter, pair, [5], [6]) for pair in pairs]
    assert found == [True, False, True]
    assert pair_filter.dropped == {"exact_repeat": 1}


def test_a_repeat_is_kept_by_default():
    pair_filter = training(drop_duplicates=False)
    assert [kept(pair_filter, PAIR, [5], [6]) for _ in range(2)] == [True, True]


def test_evaluation_pairs_are_kept_despite_repeats_and_odd_ratios():
    pair_filter = evaluation(drop_duplicates=True, max_length_ratio=1.5)
    assert [kept(pair_filter, PAIR, [5], [6] * 9) for _ in range(2)] == [True, True]


def test_evaluation_pairs_must_fit_a_batch():
    assert not kept(evaluation(max_pair_length=5), PAIR, [5] * 5, [6])


def test_training_pairs_of_the_other_splits_are_counted_and_kept():
    pair_filter = training(held_out={*pair_digests([PAIR]).tolist()})
    assert [kept(pair_filter, pair, [5], [6]) for pair in (PAIR, ("c", "d"))] == [
        True,
        True,
    ]
    assert pair_filter.also_held_out == 1


def batch_of(pairs) -> EncodedBatch:
    count = len(pairs)
    return EncodedBatch(
        digests=pair_digests(pairs),
        is_empty=np.zeros(count, bool),
        lengths=np.full((2, count), 2),
        copies=np.ones(count, int),
        written_lengths=np.empty((2, 0)),
        records=[],
    )


def test_repeats_inside_a_batch_and_across_batches_are_left_out():
    pair_filter = training(drop_duplicates=True)
    first = batch_of([("a", "b"), ("c", "d"), ("a", "b")])
    second = batch_of([("e", "f"), ("c", "d")])
    assert pair_filter.kept(first).tolist() == [True, True, False]
    assert pair_filter.kept(second).tolist() == [True, False]
    assert pair_filter.dropped == {"exact_repeat": 2}


@pytest.mark.parametrize("limit", [1, 7, 10_000])
def test_a_set_of_digests_is_pythons_set(monkeypatch, limit):
    monkeypatch.setattr(filters, "_RECENT_DIGESTS", limit)
    generator = random.Random(1)
    numbers = [generator.randrange(2**63, 2**63 + 60) for _ in range(300)]
    found, expected, seen = [], [], set()
    known = DigestSet()
    for start in range(0, 300, 11):
        batch = numbers[start : start + 11]
        found += known.add(np.array(batch, np.uint64)).tolist()
        for number in batch:
            expected.append(number not in seen)
            seen.add(number)
    assert found == expected
    assert len(known) == len(seen)


def test_a_digest_distinguishes_the_sides_and_any_text():
    pairs = [("ab", "c"), ("a", "bc"), ("c", "ab"), ("ä", "\ud800"), ("", "")]
    assert len({*pair_digests(pairs).tolist()}) == 5
    assert pair_digests([]).tolist() == []


def test_values_are_found_in_an_ascending_array():
    ascending = np.array([3, 5, 2**64 - 1], np.uint64)
    values = np.array([0, 3, 4, 5, 2**64 - 1], np.uint64)
    assert contains(ascending, values).tolist() == [False, True, False, True, True]
    assert not contains(ascending[:0], values).any()
