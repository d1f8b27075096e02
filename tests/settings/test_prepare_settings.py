from __future__ import annotations

import pytest

from t2t_repro.errors import UsageError, UserError
from t2t_repro.settings.prepare_settings import PrepareSettings


def test_copies_that_would_be_equal_are_refused():
    with pytest.raises(UsageError, match="subword_copies=3 with subword_sampling=0, "):
        PrepareSettings(subword_copies=3)


def test_another_value_keeps_the_users_own_models():
    settings = PrepareSettings(source_model="a.model", target_model="b.model")
    changed = settings.replace(num_shards=3)
    assert (changed.source_model, changed.target_model) == ("a.model", "b.model")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("vocab_size", 0, "at least 1"),
        ("vocab_size", 10**18, "at most 10000000"),
        ("model_type", "words", "one of bpe, unigram"),
        ("shared_vocabulary", 1, "true or false"),
        ("max_pair_length", 1, "at least 2"),
        ("max_length_ratio", -1.0, "at least 0"),
        ("num_shards", 0, "at least 1"),
        ("subword_copies", 0, "at least 1"),
        ("subword_sampling", -0.1, "at least 0"),
        ("subword_sampling", 1.1, "at most 1"),
        ("shuffle_seed", -1, "at least 0"),
        ("character_coverage", 0.9, "at least 0.98"),
        ("character_coverage", 1.1, "at most 1"),
    ],
)
def test_a_value_out_of_range_is_refused(name, value, expected):
    with pytest.raises(UserError, match=f"{name}: received .*, expected {expected}"):
        PrepareSettings(**{name: value})
