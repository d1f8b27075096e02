"""Every split is written with its own settings, filters and files."""

from __future__ import annotations

import random

import pytest

from t2t_repro.data import shard_writer
from t2t_repro.data.manifest import SplitCounts
from t2t_repro.data.output_files import OutputFiles
from t2t_repro.data.problem import RepeatedPair
from t2t_repro.data.shard_writer import write_splits
from tests.support.corpus import examples_in
from tests.support.pairs_problem import DIGITS, LETTERS, SETTINGS, TEXT, Pairs


def examples(paths):
    return [
        [([*inputs], [*targets]) for inputs, targets in examples_in(path)]
        for path in paths
    ]


@pytest.fixture
def counts(tmp_path):
    return write(Pairs(), tmp_path, "prefix")


def write(problem, folder, prefix):
    with OutputFiles(folder, prefix) as outputs:
        return write_splits(
            problem,
            folder / "tmp",
            SETTINGS,
            (DIGITS, LETTERS),
            outputs,
            num_workers=1,
        )


def test_only_training_pairs_are_filtered_as_such(tmp_path):
    repeated = [("1", "a"), ("1", "a"), ("1", "b b b")]
    problem = Pairs(train=[*repeated, ("2", "b")], dev=repeated)
    counts = write(problem, tmp_path, "prefix")
    assert counts["train"].dropped == {"exact_repeat": 1, "length_ratio": 1}
    assert counts["train"].also_held_out == 3
    assert (counts["dev"].pairs_written, counts["dev"].dropped) == (3, {})


def test_the_counts_are_those_of_each_split_in_order(counts):
    assert [*counts] == ["train", "dev", "test"]
    assert counts["train"] == SplitCounts(
        pairs_read=5,
        pairs_written=3,
        dropped={"empty_side": 1, "too_long": 1},
        source_subwords=3 + 2 + 3,
        target_subwords=3 + 2 + 3,
        pairs_by_length=[0, 0, 1, 2],
        also_held_out=1,
        shards=["prefix-train-00000-of-00002", "prefix-train-00001-of-00002"],
    )
    assert counts["dev"] == SplitCounts(
        pairs_read=3,
        pairs_written=3,
        dropped={},
        source_subwords=2 + 2 + 4,
        target_subwords=2 + 2 + 3,
        pairs_by_length=[0, 0, 2, 0, 1],
        also_held_out=0,
        shards=["prefix-dev-00000-of-00001"],
    )
    assert counts["test"].source_subwords == 4
    assert counts["test"].target_subwords == 3


def test_each_side_is_encoded_by_its_own_tokenizer(counts, tmp_path):
    (file,) = examples([tmp_path / "prefix-dev-00000-of-00001"])
    one, two, three, _ = (DIGITS.encode(digit)[0] for digit in "1234")
    b, c = (LETTERS.encode(letter)[0] for letter in "BC")
    assert file == [
        ([two, 1], [b, 1]),
        ([three, 1], [c, 1]),
        ([one, one, one, 1], [b, b, 1]),
    ]
    files = examples(sorted(tmp_path.glob("prefix-train-*")))
    assert [len(file) for file in files] == [2, 1]


def test_the_raw_text_has_every_pair_on_its_own_side(counts, tmp_path):
    lines = {
        path.name: path.read_text().splitlines() for path in tmp_path.glob("*.txt")
    }
    assert lines == {
        "prefix-dev.inputs.txt": ["2", "3", "1 1 1"],
        "prefix-dev.targets.txt": ["b", "c", "b b"],
        "prefix-test.inputs.txt": ["1 3 2"],
        "prefix-test.targets.txt": ["a c"],
    }


def test_the_raw_text_keeps_pairs_that_the_shards_leave_out_on_one_line(tmp_path):
    dev = [("1\n2", "a"), ("\u200b", "a"), ("1 2 3 1", "b")]
    counts = write(Pairs(dev=dev), tmp_path, "prefix")["dev"]
    assert counts.dropped == {"empty_side": 1, "too_long": 1}
    written = (tmp_path / "prefix-dev.inputs.txt").read_text()
    assert written == "1 2\n\u200b\n1 2 3 1\n"


@pytest.mark.parametrize("size", [1, 2, 100])
def test_pairs_are_encoded_in_batches_with_the_same_result(
    tmp_path, monkeypatch, counts, size
):
    monkeypatch.setattr(shard_writer, "_PAIRS_AT_A_TIME", size)
    again = write(Pairs(), tmp_path, "again")
    for split in ("train", "dev", "test"):
        first, second = (
            examples(sorted(tmp_path.glob(f"{name}-{split}-*-of-*")))
            for name in ("prefix", "again")
        )
        assert first == second
        assert again[split].pairs_read == counts[split].pairs_read == len(TEXT[split])


def test_copies_of_a_pair_are_written_and_are_no_repeats(tmp_path):
    train = [
        ("1", "a"),
        RepeatedPair("2", "b", 3),
        RepeatedPair("1", "a", 2),
        RepeatedPair("", "a", 4),
    ]
    counts = write(Pairs(train=train), tmp_path, "prefix")["train"]
    assert (counts.pairs_read, counts.pairs_written) == (4, 4)
    assert counts.dropped == {"empty_side": 1, "exact_repeat": 1}
    assert counts.source_subwords == 4 * 2
    one, two = (DIGITS.encode(digit)[0] for digit in "12")
    files = examples(sorted(tmp_path.glob("prefix-train-*")))
    sources = sorted(source for file in files for source, _ in file)
    assert sources == sorted([[one, 1], [two, 1], [two, 1], [two, 1]])


def test_a_pair_belongs_to_the_shard_after_that_of_the_pair_before(tmp_path):
    digits = "1234123"
    problem = Pairs(train=[(digit, "a") for digit in digits])
    with OutputFiles(tmp_path, "prefix") as outputs:
        settings = SETTINGS.replace(num_shards=3, drop_duplicates=False)
        sides = (DIGITS, LETTERS)
        write_splits(problem, None, settings, sides, outputs, num_workers=1)
    files = examples(sorted(tmp_path.glob("prefix-train-*")))
    for shard, file in enumerate(files):
        expected = [*digits[shard::3]]
        random.Random(f"5/{shard}").shuffle(expected)
        assert [DIGITS.decode(source[:-1]) for source, _ in file] == expected
