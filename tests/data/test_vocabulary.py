from __future__ import annotations

import itertools

import pytest

from t2t_repro.data import vocabulary
from t2t_repro.data.problem import Problem
from t2t_repro.data.vocabulary import learn_tokenizers, spread_sample
from t2t_repro.settings.prepare_settings import PrepareSettings


def numbered(count):
    return ((f"source {n}", f"target {n}") for n in range(count))


@pytest.mark.parametrize("count", [0, 1, 10])
def test_a_short_text_is_taken_whole(count):
    assert spread_sample(numbered(count), 10) == list(numbered(count))


@pytest.mark.parametrize("count", [11, 20, 99, 1_000])
def test_a_long_text_is_sampled_at_even_distances(count):
    pairs = spread_sample(numbered(count), 10)
    sample = [int(source.split()[1]) for source, _ in pairs]
    distances = {later - earlier for earlier, later in itertools.pairwise(sample)}
    assert 5 <= len(sample) <= 10
    assert len(distances) == 1
    assert count - sample[-1] <= distances.pop()


class TwoLanguages(Problem):
    name = "two_languages"

    def pairs(self, split, tmp_dir):
        for _ in range(500):
            yield "hello hello world", "grüße grüße allerseits"


@pytest.mark.parametrize("limit", [2, 100, 10_000])
def test_a_shared_vocabulary_knows_both_sides_of_a_text_that_is_sampled(
    monkeypatch, limit
):
    monkeypatch.setattr(vocabulary, "MAX_TRAINING_PAIRS", limit)
    settings = PrepareSettings(vocab_size=290)
    source, target = learn_tokenizers(TwoLanguages(), settings, None)
    assert source is target
    for word in ("hello", "grüße"):
        assert len(source.encode(word)) < len(word.encode()), word
