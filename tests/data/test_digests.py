from __future__ import annotations

import random

import numpy as np
import pytest

from t2t_repro.data import filters
from t2t_repro.data.encoding import pair_digest, pair_digests
from t2t_repro.data.filters import DigestSet, contains


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


def test_the_digests_of_pairs_are_those_of_each_pair():
    pairs = [("a", "b"), ("ä", "\ud800"), ("", "")]
    assert pair_digests(pairs).tolist() == [pair_digest(*pair) for pair in pairs]
    assert pair_digests([]).tolist() == []


def test_values_are_found_in_an_ascending_array():
    ascending = np.array([3, 5, 2**64 - 1], np.uint64)
    values = np.array([0, 3, 4, 5, 2**64 - 1], np.uint64)
    assert contains(ascending, values).tolist() == [False, True, False, True, True]
    assert not contains(ascending[:0], values).any()
