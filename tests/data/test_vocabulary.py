from __future__ import annotations

import itertools

import pytest

from t2t_repro.data.vocabulary import spread_sample


@pytest.mark.parametrize("count", [0, 1, 10])
def test_a_short_text_is_taken_whole(count):
    assert spread_sample(map(str, range(count)), 10) == [str(n) for n in range(count)]


@pytest.mark.parametrize("count", [11, 20, 99, 1_000])
def test_a_long_text_is_taken_at_even_distances(count):
    sample = [int(line) for line in spread_sample(map(str, range(count)), 10)]
    distances = {later - earlier for earlier, later in itertools.pairwise(sample)}
    assert 5 <= len(sample) <= 10
    assert len(distances) == 1
    assert count - sample[-1] <= distances.pop()
