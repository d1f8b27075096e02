from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import sacrebleu

from t2t_repro.data.prepare import prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.problem import Problem, ReversedProblem, Vocabulary
from t2t_repro.errors import UserError
from t2t_repro.features.scores import word_bands as module
from t2t_repro.features.scores.word_bands import (
    count_training_words,
    count_words,
    scores_by_length,
    training_pairs_to_count,
    words_by_frequency,
)
from t2t_repro.settings.prepare_settings import PrepareSettings


def words(count):
    return " ".join(f"w{n}" for n in range(count))


def test_limits_belong_to_the_shorter_band():
    lengths = [0, 5, 6, 10, 11, 15, 16, 20, 21, 30, 31, 40, 41, 60, 61, 900]
    texts = [*map(words, lengths)]
    bands = scores_by_length(texts, texts, texts)
    labels = ["0-5", "6-10", "11-15", "16-20", "21-30", "31-40", "41-60", "61+"]
    assert [(b.label, b.sentences) for b in bands] == [(label, 2) for label in labels]


def test_each_band_has_the_scores_of_its_own_sentences():
    measured = [words(7), words(3), words(8)]
    hypotheses = ["the cat sat on a mat", "a", "one two three four five"]
    references = ["the cat sat on the mat", "b", "one two three four six seven"]
    short, long = scores_by_length(measured, hypotheses, references)
    assert (short.label, short.sentences, short.bleu) == ("0-5", 1, 0)
    streams = hypotheses[::2], [references[::2]]
    expected = sacrebleu.corpus_bleu(*streams)
    assert long.bleu == pytest.approx(expected.score)
    assert long.chrf == pytest.approx(sacrebleu.corpus_chrf(*streams).score)
    assert long.length_ratio == pytest.approx(11 / 12)


def test_empty_references_do_not_divide_by_zero():
    (band,) = scores_by_length([""], ["a"], [""])
    assert band.length_ratio == 1


FREQUENCIES = {"rare": 1, "few": 2, "nine": 9, "ten": 10, "many": 99, "more": 100}
FREQUENCIES |= {"most": 999, "the": 1000}


def measured(hypotheses, references):
    return {
        band.label: (band.in_references, band.in_hypotheses, band.found)
        for band in words_by_frequency(hypotheses, references, FREQUENCIES)
    }


def test_every_word_is_in_the_band_of_its_frequency():
    assert measured(["new " + " ".join(FREQUENCIES)], ["x"]) == {
        "0": (1, 1, 0),  # x; new
        "1": (0, 1, 0),
        "2-9": (0, 2, 0),
        "10-99": (0, 2, 0),
        "100-999": (0, 2, 0),
        "1000+": (0, 1, 0),
    }


def test_a_word_is_found_as_often_as_it_is_on_both_sides_of_a_sentence():
    # "the" 3 and 2 times, then 0 and 1 times, then 1 and 1 times: 2 + 0 + 1.
    hypotheses = ["the the the", "rare", "the few"]
    references = ["the the", "the rare", "few the few"]
    assert measured(hypotheses, references) == {
        "1": (1, 1, 1),
        "2-9": (2, 1, 1),
        "1000+": (4, 4, 3),
    }


def test_recall_and_precision_are_percentages():
    (band,) = words_by_frequency(["a a a"], ["a a"], {"a": 1})
    assert band.recall == 100
    assert band.precision == pytest.approx(100 * 2 / 3)


def test_without_words_there_is_no_percentage():
    (unknown,) = words_by_frequency(["a"], [""], {})
    assert (unknown.recall, unknown.precision) == (None, 0)
    (missed,) = words_by_frequency([""], ["a"], {})
    assert (missed.recall, missed.precision) == (0, None)
    assert words_by_frequency([""], [""], {}) == ()


def test_words_are_tokens_with_case_and_without_punctuation():
    expected = Counter(["Das", "Haus", ",", "das", "Haus", "."])
    assert count_words(["Das Haus, das", "Haus."]) == expected


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
