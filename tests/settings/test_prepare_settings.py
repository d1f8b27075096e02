from __future__ import annotations

import pytest

from t2t_repro.errors import UserError
from t2t_repro.settings.prepare_settings import PrepareSettings


def test_manifests_keep_the_old_names_of_renamed_settings():
    settings = PrepareSettings(
        vocab_size=300,
        model_type="unigram",
        shared_vocabulary=False,
        max_pair_length=41,
        max_length_ratio=2.5,
        drop_duplicates=True,
        num_shards=4,
        shuffle_seed=7,
        character_coverage=0.985,
        source_model="a.model",
        target_model="b.model",
    )
    assert list(settings.recorded().items()) == [
        ("vocab_size", 300),
        ("model_type", "unigram"),
        ("shared_vocabulary", False),
        ("max_length", 41),
        ("max_length_ratio", 2.5),
        ("drop_duplicates", True),
        ("num_shards", 4),
        ("seed", 7),
        ("character_coverage", 0.985),
    ]


def test_another_value_keeps_the_users_own_models():
    settings = PrepareSettings(source_model="a.model", target_model="b.model")
    changed = settings.replace(num_shards=3)
    assert (changed.source_model, changed.target_model) == ("a.model", "b.model")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("vocab_size", 0, "at least 1"),
        ("model_type", "words", "one of bpe, unigram"),
        ("shared_vocabulary", 1, "true or false"),
        ("max_pair_length", 1, "at least 2"),
        ("max_length_ratio", -1.0, "at least 0"),
        ("num_shards", 0, "at least 1"),
        ("shuffle_seed", -1, "at least 0"),
        ("character_coverage", 0.9, "at least 0.98"),
        ("character_coverage", 1.1, "at most 1"),
    ],
)
def test_a_value_out_of_range_is_refused(name, value, expected):
    with pytest.raises(UserError, match=f"{name}: received .*, expected {expected}"):
        PrepareSettings(**{name: value})
