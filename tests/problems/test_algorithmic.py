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


def test_identity_repeats_its_input():
    assert all(source == target for source, target in some_pairs("identity", "train"))


def test_reverse_reverses_its_input():
    pairs = some_pairs("reverse", "train")
    assert all(source[::-1] == target for source, target in pairs)


def test_sort_puts_the_smallest_first():
    pairs = some_pairs("sort", "train")
    assert all(sorted(source) == target for source, target in pairs)


def number(digits: list[str]) -> int:
    return sum(int(digit) * 10**place for place, digit in enumerate(digits))


def test_addition_gives_the_sum_lowest_digit_first():
    for source, target in some_pairs("addition", "train"):
        plus = source.index("+")
        assert number(target) == number(source[:plus]) + number(source[plus + 1 :])


def test_numbers_have_no_leading_zeros():
    for source, target in some_pairs("addition", "train"):
        plus = source.index("+")
        for digits in (source[:plus], source[plus + 1 :], target):
            assert digits == ["0"] or digits[-1] != "0"


@pytest.mark.parametrize("name", NAMES)
def test_inputs_have_up_to_twenty_symbols(name):
    lengths = {len(source) for source, _ in some_pairs(name, "train", 2_000)}
    shortest = 3 if name == "addition" else 1
    assert (min(lengths), max(lengths)) == (shortest, 20)


@pytest.mark.parametrize("name", NAMES)
def test_held_out_inputs_have_the_lengths_of_training(name):
    lengths = {len(source) for source, _ in some_pairs(name, "test", 500)}
    assert max(lengths) == 20
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
def test_the_pairs_are_the_same_every_time(name):
    first, second = (list(problem(name).pairs("dev", None)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", NAMES)
def test_the_vocabulary_holds_every_symbol(name):
    tokenizer = SymbolTokenizer(problem(name).vocabulary.symbols)
    for source, target in problem(name).pairs("dev", None):
        assert UNK_ID not in tokenizer.encode(source)
        assert UNK_ID not in tokenizer.encode(target)


def test_the_splits_have_20000_500_and_500_pairs():
    counts = [sum(1 for _ in problem("sort").pairs(split, None)) for split in SPLITS]
    assert counts == [20_000, 500, 500]
