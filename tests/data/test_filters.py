from __future__ import annotations

from t2t_repro.data.filters import PairFilter, pair_digest
from t2t_repro.settings.prepare_settings import PrepareSettings

PAIR = ("a", "b")


def training(held_out: frozenset[int] = frozenset(), **settings) -> PairFilter:
    return PairFilter(PrepareSettings(**settings), is_training=True, held_out=held_out)


def evaluation(**settings) -> PairFilter:
    return PairFilter(PrepareSettings(**settings), is_training=False)


def test_a_good_pair_is_kept_and_not_counted():
    pair_filter = training()
    assert pair_filter.keeps(PAIR, [5], [6])
    assert pair_filter.dropped == {}


def test_an_empty_side_is_counted():
    pair_filter = training()
    assert not pair_filter.keeps(PAIR, [], [6])
    assert not pair_filter.keeps(PAIR, [5], [])
    assert pair_filter.dropped == {"empty_side": 2}


def test_the_longest_length_counts_the_end_of_sentence():
    pair_filter = training(max_pair_length=4)
    assert pair_filter.keeps(PAIR, [5] * 3, [6])
    assert not pair_filter.keeps(PAIR, [5], [6] * 4)
    assert pair_filter.dropped == {"too_long": 1}


def test_a_ratio_is_kept_up_to_the_limit():
    pair_filter = training(max_length_ratio=2.0)
    assert pair_filter.keeps(PAIR, [5] * 4, [6] * 2)
    assert not pair_filter.keeps(PAIR, [5] * 2, [6] * 5)
    assert pair_filter.dropped == {"length_ratio": 1}


def test_every_ratio_is_accepted_by_default():
    assert training().keeps(PAIR, [5], [6] * 200)


def test_a_repeat_is_counted_on_request():
    pair_filter = training(drop_duplicates=True)
    kept = [pair_filter.keeps(pair, [5], [6]) for pair in (PAIR, PAIR, ("a", "c"))]
    assert kept == [True, False, True]
    assert pair_filter.dropped == {"exact_repeat": 1}


def test_a_repeat_is_kept_by_default():
    pair_filter = training(drop_duplicates=False)
    assert [pair_filter.keeps(PAIR, [5], [6]) for _ in range(2)] == [True, True]


def test_evaluation_pairs_are_kept_despite_repeats_and_odd_ratios():
    pair_filter = evaluation(drop_duplicates=True, max_length_ratio=1.5)
    assert [pair_filter.keeps(PAIR, [5], [6] * 9) for _ in range(2)] == [True, True]


def test_evaluation_pairs_must_fit_a_batch():
    assert not evaluation(max_pair_length=5).keeps(PAIR, [5] * 5, [6])


def test_training_pairs_of_the_other_splits_are_counted_and_kept():
    pair_filter = training(held_out=frozenset([pair_digest(*PAIR)]))
    assert [pair_filter.keeps(pair, [5], [6]) for pair in (PAIR, ("c", "d"))] == [
        True,
        True,
    ]
    assert pair_filter.also_held_out == 1


def test_a_digest_distinguishes_the_sides():
    assert (
        len({pair_digest("ab", "c"), pair_digest("a", "bc"), pair_digest("c", "ab")})
        == 3
    )
