from __future__ import annotations

from pathlib import Path

import pytest

from t2t_repro.data.prepare import prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import Problem, ReversedProblem, Vocabulary
from t2t_repro.errors import UserError
from t2t_repro.features.scores import word_bands as module
from t2t_repro.features.scores.word_bands import (
    count_training_words,
    training_pairs_to_count,
)
from t2t_repro.settings.prepare_settings import PrepareSettings

TRAIN = [
    *[("a dog.", "ein Hund, ein Hund.")] * 3,
    ("two cats", "zwei Katzen"),
    ("a", "ein"),
]

SETTINGS = PrepareSettings(vocab_size=300, num_shards=2)


class Animals(Problem):
    vocabulary = Vocabulary(size=300)

    def pairs(self, split, tmp_dir):
        del tmp_dir
        yield from TRAIN if split == "train" else [("x dev", "y dev")]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    prepare(Animals(), folder, settings=SETTINGS)
    return folder


def test_target_words_of_the_training_pairs_are_counted(prepared):
    words = count_training_words(PreparedData.load(prepared, Animals()))
    expected = {"ein": 7, "Hund": 6, ",": 3, ".": 3, "zwei": 1, "Katzen": 1}
    assert words.counts == expected
    assert words.text == "the training text (5 pairs)"


def test_a_reversed_problem_has_the_words_of_the_other_side(prepared):
    reverse = ReversedProblem(Animals())
    words = count_training_words(PreparedData.load(prepared, reverse))
    assert words.counts == {"a": 4, "dog": 3, ".": 3, "two": 1, "cats": 1}


def test_a_damaged_record_is_reported(tmp_path):
    prepare(Animals(), tmp_path, settings=SETTINGS)
    data = PreparedData.load(tmp_path, Animals())
    path = Path(data.shards("train").paths[0])
    content = bytearray(path.read_bytes())
    content[-6] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(UserError, match="cannot read the prepared data: corrupted"):
        count_training_words(data)


def test_the_progress_is_the_number_of_pairs(prepared, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 2)
    done, data = [], PreparedData.load(prepared, Animals())
    count_training_words(data, done.append)
    assert done == [2, 2, 1]
    assert training_pairs_to_count(data) == 5


def test_at_most_so_many_pairs_are_counted_and_the_text_says_so(prepared, monkeypatch):
    monkeypatch.setattr(module, "MOST_PAIRS", 3)
    data = PreparedData.load(prepared, Animals())
    assert count_training_words(data).text == "the training text (3 pairs)"
    assert training_pairs_to_count(data) == 3


def test_copies_with_sampled_subwords_count_once(tmp_path, prepared):
    sampled = SETTINGS.replace(subword_copies=3, subword_sampling=0.5)
    data = prepare(Animals(), tmp_path, settings=sampled)
    assert data.manifest.splits["train"].pairs_written == 3 * 5
    words = count_training_words(data)
    assert words == count_training_words(PreparedData.load(prepared, Animals()))


def test_missing_shards_are_an_error(tmp_path):
    prepare(Animals(), tmp_path, settings=SETTINGS)
    next(tmp_path.glob("*-train-*")).unlink()
    with pytest.raises(UserError, match="is missing"):
        count_training_words(PreparedData.load(tmp_path, Animals()))
