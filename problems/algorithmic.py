"""Tasks on decimal digits: small, endless, and with one right answer.

Differs from tensor2tensor (`data_generators/algorithmic.py`): lengths are at most 20 in
every split, so that a small model learns them, and no two splits share an input.
"""

from __future__ import annotations

import abc
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

from t2t_repro.data.problem import Problem, Vocabulary
from t2t_repro.registry import register_problem

DIGITS = tuple("0123456789")
PLUS = "+"
MAX_SYMBOLS = 20
PAIRS = {"train": 20_000, "dev": 500, "test": 500}

# One of a hundred inputs may be in the dev split, and one in the test split.
_BUCKETS = 100
_SPLIT_OF_BUCKET = {0: "dev", 1: "test"}


def split_of(source: str) -> str:
    """Return the only split that may hold an input."""
    digest = hashlib.blake2b(source.encode(), digest_size=8).digest()
    bucket = int.from_bytes(digest, "little") % _BUCKETS
    return _SPLIT_OF_BUCKET.get(bucket, "train")


class AlgorithmicProblem(Problem):
    """A function of a sequence of digits; pair N of a split is always the same."""

    vocabulary = Vocabulary(kind="symbols", symbols=DIGITS)

    @abc.abstractmethod
    def draw(self, generator: random.Random) -> list[str]:
        """Return the symbols of an input."""

    @abc.abstractmethod
    def answer(self, inputs: list[str]) -> list[str]:
        """Return the symbols of the target of an input."""

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        del tmp_dir
        for index in range(PAIRS[split]):
            yield self.pair(split, index)

    def pair(self, split: str, index: int) -> tuple[str, str]:
        """Return pair `index` of a split."""
        generator = random.Random(f"{self.name}/{split}/{index}")
        while True:
            inputs = self.draw(generator)
            source = " ".join(inputs)
            if split_of(source) == split:
                return source, " ".join(self.answer(inputs))


class SequenceProblem(AlgorithmicProblem):
    """A function of one sequence of 1 to 20 digits."""

    def draw(self, generator: random.Random) -> list[str]:
        return generator.choices(DIGITS, k=generator.randint(1, MAX_SYMBOLS))


@register_problem
class AlgorithmicIdentity(SequenceProblem):
    """Copy up to 20 digits."""

    def answer(self, inputs: list[str]) -> list[str]:
        return inputs


@register_problem
class AlgorithmicReverse(SequenceProblem):
    """Reverse up to 20 digits."""

    def answer(self, inputs: list[str]) -> list[str]:
        return inputs[::-1]


@register_problem
class AlgorithmicSort(SequenceProblem):
    """Sort up to 20 digits, the smallest first."""

    def answer(self, inputs: list[str]) -> list[str]:
        return sorted(inputs)


@register_problem
class AlgorithmicAddition(AlgorithmicProblem):
    """Add two numbers written lowest digit first."""

    vocabulary = Vocabulary(kind="symbols", symbols=(*DIGITS, PLUS))

    def draw(self, generator: random.Random) -> list[str]:
        # As in tensor2tensor: the first number takes up to half of the symbols, the
        # second one up to all that remain after the plus sign.
        first = generator.randint(1, MAX_SYMBOLS // 2)
        second = generator.randint(1, MAX_SYMBOLS - first - 1)
        return [*_number(generator, first), PLUS, *_number(generator, second)]

    def answer(self, inputs: list[str]) -> list[str]:
        plus = inputs.index(PLUS)
        numbers = (inputs[:plus], inputs[plus + 1 :])
        total = sum(int("".join(reversed(number))) for number in numbers)
        return list(reversed(str(total)))


def _number(generator: random.Random, length: int) -> list[str]:
    """Draw a number of `length` digits, lowest first, without leading zeros."""
    if length == 1:
        return [generator.choice(DIGITS)]
    lower = generator.choices(DIGITS, k=length - 1)
    return [*lower, generator.choice(DIGITS[1:])]
