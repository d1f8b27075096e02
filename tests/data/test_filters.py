from __future__ import annotations

import numpy as np

from t2t_repro.data.encoding import EncodedBatch, Examples, pair_digest, pair_digests
from t2t_repro.data.filters import PairFilter
from t2t_repro.settings.prepare_settings import PrepareSettings

PAIR = ("a", "b")
# The filters do not read them.
NO_EXAMPLES = Examples(np.empty(0), np.empty(0), [])


def training(held_out: frozenset[int] = frozenset(), **settings) -> PairFilter:
    return PairFilter(PrepareSettings(**settings), is_training=True, held_out=held_out)


def evaluation(**settings) -> PairFilter:
    return PairFilter(PrepareSettings(**settings), is_training=False)


def kept(pair_filter, pair, source_ids, target_ids) -> bool:
    """Filter a batch of one pair, whose ids lack the end of sentence."""
    batch = EncodedBatch(
        digests=pair_digests([pair]),
        text_digest="",
        is_empty=np.array([not source_ids or not target_ids]),
        source_lengths=np.array([len(source_ids) + 1]),
        target_lengths=np.array([len(target_ids) + 1]),
        copies=np.array([1]),
        examples=NO_EXAMPLES,
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
    pair_filter = training(held_out=frozenset([pair_digest(*PAIR)]))
    assert [kept(pair_filter, pair, [5], [6]) for pair in (PAIR, ("c", "d"))] == [
        True,
        True,
    ]
    assert pair_filter.also_held_out == 1


def test_a_digest_distinguishes_the_sides():
    assert (
        len({pair_digest("ab", "c"), pair_digest("a", "bc"), pair_digest("c", "ab")})
        == 3
    )


def batch_of(pairs) -> EncodedBatch:
    count = len(pairs)
    return EncodedBatch(
        digests=pair_digests(pairs),
        text_digest="",
        is_empty=np.zeros(count, bool),
        source_lengths=np.full(count, 2),
        target_lengths=np.full(count, 2),
        copies=np.ones(count, int),
        examples=NO_EXAMPLES,
    )


def test_repeats_inside_a_batch_and_across_batches_are_left_out():
    pair_filter = training(drop_duplicates=True)
    first = batch_of([("a", "b"), ("c", "d"), ("a", "b")])
    second = batch_of([("e", "f"), ("c", "d")])
    assert pair_filter.kept(first).tolist() == [True, True, False]
    assert pair_filter.kept(second).tolist() == [True, False]
    assert pair_filter.dropped == {"exact_repeat": 2}


def test_pairs_of_an_earlier_process_are_repeats():
    pair_filter = training(drop_duplicates=True)
    pair_filter.remember(pair_digests([PAIR]))
    assert not kept(pair_filter, PAIR, [5], [6])
    assert training(drop_duplicates=False).kept(batch_of([PAIR])).all()
