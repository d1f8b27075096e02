from __future__ import annotations

import random

import numpy as np
import pytest

from t2t_repro.data import filters
from t2t_repro.data.encoding import EncodedBatch, pair_digests
from t2t_repro.data.filters import DigestSet, PairFilter, contains
from t2t_repro.settings.prepare_settings import PrepareSettings


def batch_of(pairs, lengths=None) -> EncodedBatch:
    """Return pairs with numbers of subwords, which lack the end of sentence."""
    lengths = np.array([(1, 1)] * len(pairs) if lengths is None else lengths)
    return EncodedBatch(
        digests=pair_digests(pairs),
        is_empty=(lengths == 0).any(axis=1),
        lengths=lengths.T + 1,
        copies=np.ones(len(pairs), int),
        # The filters do not read them.
        written_lengths=np.empty((2, 0)),
        records=[],
    )


TOO_LONG, ODD = {"too_long": 1}, {"length_ratio": 1}


@pytest.mark.parametrize(
    ("split", "settings", "lengths", "kept", "dropped"),
    [
        ("train", {}, [(1, 1), (1, 200)], [True, True], {}),
        ("train", {}, [(0, 1), (1, 0)], [False, False], {"empty_side": 2}),
        # The longest length counts the end of sentence.
        ("train", {"max_pair_length": 4}, [(3, 1), (1, 4)], [True, False], TOO_LONG),
        ("dev", {"max_pair_length": 4}, [(3, 1), (1, 4)], [True, False], TOO_LONG),
        ("train", {"max_length_ratio": 2.0}, [(4, 2), (2, 5)], [True, False], ODD),
        ("dev", {"max_length_ratio": 2.0}, [(4, 2), (2, 5)], [True, True], {}),
    ],
)
def test_pairs_are_left_out_by_their_lengths(split, settings, lengths, kept, dropped):
    pair_filter = PairFilter(PrepareSettings(**settings), split)
    pairs = [("a", str(number)) for number in range(len(lengths))]
    assert pair_filter.kept(batch_of(pairs, lengths)).tolist() == kept
    assert pair_filter.dropped == dropped


@pytest.mark.parametrize(
    ("split", "drops"), [("train", True), ("train", False), ("dev", True)]
)
def test_repeats_inside_a_batch_and_across_batches_are_left_out(split, drops):
    pair_filter = PairFilter(PrepareSettings(drop_duplicates=drops), split)
    first = batch_of([("a", "b"), ("c", "d"), ("a", "b")])
    second = batch_of([("e", "f"), ("c", "d")])
    repeats = drops and split == "train"
    assert pair_filter.kept(first).tolist() == [True, True, not repeats]
    assert pair_filter.kept(second).tolist() == [True, not repeats]
    assert pair_filter.dropped == ({"exact_repeat": 2} if repeats else {})


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
