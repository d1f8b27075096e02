from __future__ import annotations

from collections import Counter

import pytest

from t2t_repro.data import vocabulary
from t2t_repro.data.problem import Problem
from t2t_repro.data.vocabulary import learn_tokenizers, random_sample
from t2t_repro.settings.prepare_settings import PrepareSettings


def numbered(count):
    return ((f"source {n}", f"target {n}") for n in range(count))


@pytest.mark.parametrize("count", [0, 1, 10])
def test_a_short_text_is_taken_whole(count):
    assert random_sample(numbered(count), 10) == list(numbered(count))


@pytest.mark.parametrize("count", [11, 20, 1_000])
def test_a_long_text_is_sampled_in_its_order_and_always_alike(count):
    sample = random_sample(numbered(count), 10)
    numbers = [int(source.split()[1]) for source, _ in sample]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 10
    assert random_sample(numbered(count), 10) == sample


def test_every_part_of_a_text_has_the_same_share_of_the_sample():
    sample = random_sample(numbered(10_000), 2_000)
    tenths = Counter(int(source.split()[1]) // 1_000 for source, _ in sample)
    # 200 are expected; the standard deviation is 13.
    assert all(140 < tenths[tenth] < 260 for tenth in range(10))


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
