from __future__ import annotations

import itertools

import pytest

from t2t_repro import catalogue
from t2t_repro.constants import UNK_ID
from t2t_repro.text import SymbolTokenizer

NAMES = ("identity", "reverse", "sort", "addition")
SPLITS = ("train", "dev", "test")


def problem(name: str):
    return catalogue.problem(f"algorithmic_{name}")


def some_pairs(name: str, split: str, count: int = 200) -> list[tuple[list, list]]:
    pairs = itertools.islice(problem(name).pairs(split, None), count)
    return [(source.split(" "), target.split(" ")) for source, target in pairs]


@pytest.mark.parametrize(
    ("name", "function"),
    [("identity", list), ("reverse", lambda x: x[::-1]), ("sort", sorted)],
)
def test_targets_are_a_function_of_the_sources(name, function):
    assert all(function(left) == right for left, right in some_pairs(name, "train"))


def number(digits: list[str]) -> int:
    return sum(int(digit) * 10**place for place, digit in enumerate(digits))


def test_addition_gives_the_sum_lowest_digit_first():
    for source, target in some_pairs("addition", "train"):
        plus = source.index("+")
        numbers = source[:plus], source[plus + 1 :], target
        assert number(target) == number(numbers[0]) + number(numbers[1])
        assert all(digits == ["0"] or digits[-1] != "0" for digits in numbers)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("split", ["train", "test"])
def test_inputs_have_up_to_twenty_symbols(name, split):
    lengths = {len(source) for source, _ in some_pairs(name, split, 2_000)}
    assert max(lengths) == 20
    if split == "train":
        assert min(lengths) == (3 if name == "addition" else 1)
    else:
        assert len(lengths) > 12


@pytest.mark.parametrize("name", NAMES)
def test_no_input_is_in_two_splits(name):
    sources = {
        split: {source for source, _ in problem(name).pairs(split, None)}
        for split in SPLITS
    }
    for one, other in itertools.combinations(SPLITS, 2):
        assert sources[one] & sources[other] == set()


@pytest.mark.parametrize("name", NAMES)
def test_the_vocabulary_holds_every_symbol(name):
    tokenizer = SymbolTokenizer(problem(name).vocabulary.symbols)
    for source, target in problem(name).pairs("dev", None):
        assert UNK_ID not in tokenizer.encode(source)
        assert UNK_ID not in tokenizer.encode(target)


def test_the_splits_have_20000_500_and_500_pairs():
    counts = [sum(1 for _ in problem("sort").pairs(split, None)) for split in SPLITS]
    assert counts == [20_000, 500, 500]
