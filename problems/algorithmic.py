"""Tasks on decimal digits: small, endless, and with a right answer.

After tensor2tensor's `data_generators/algorithmic.py`, with two differences: lengths
stay below 20 in every split, and the splits have no input in common.
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

# Of a hundred inputs one may stand in the dev split, one in the test split.
_BUCKETS = 100
_BUCKET_OF = {"dev": 0, "test": 1}


def split_of(source: str) -> str:
    """Gives the only split that an input may stand in."""
    digest = hashlib.blake2b(source.encode(), digest_size=8).digest()
    bucket = int.from_bytes(digest, "little") % _BUCKETS
    held_out = (split for split, own in _BUCKET_OF.items() if own == bucket)
    return next(held_out, "train")


class AlgorithmicProblem(Problem):
    """A function of a sequence of digits; pair N of a split is always the same."""

    vocabulary = Vocabulary(kind="symbols", symbols=DIGITS)

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        del tmp_dir
        for index in range(PAIRS[split]):
            yield self.pair(split, index)

    def pair(self, split: str, index: int) -> tuple[str, str]:
        """Gives pair `index` of a split."""
        generator = random.Random(f"{self.name}/{split}/{index}")
        while True:
            inputs = self._draw(generator)
            source = " ".join(inputs)
            if split_of(source) == split:
                return source, " ".join(self._answer(inputs))

    @abc.abstractmethod
    def _draw(self, generator: random.Random) -> list[str]:
        """Gives the symbols of an input."""

    @abc.abstractmethod
    def _answer(self, inputs: list[str]) -> list[str]:
        """Gives the symbols that an input is to be turned into."""


class SequenceProblem(AlgorithmicProblem):
    """A function of one sequence of 1 to 20 digits."""

    def _draw(self, generator: random.Random) -> list[str]:
        return generator.choices(DIGITS, k=generator.randint(1, MAX_SYMBOLS))


@register_problem
class AlgorithmicIdentity(SequenceProblem):
    """Copy up to 20 digits."""

    def _answer(self, inputs: list[str]) -> list[str]:
        return inputs


@register_problem
class AlgorithmicReverse(SequenceProblem):
    """Reverse up to 20 digits."""

    def _answer(self, inputs: list[str]) -> list[str]:
        return inputs[::-1]


@register_problem
class AlgorithmicSort(SequenceProblem):
    """Sort up to 20 digits, the smallest first."""

    def _answer(self, inputs: list[str]) -> list[str]:
        return sorted(inputs)


@register_problem
class AlgorithmicAddition(AlgorithmicProblem):
    """Add two numbers written lowest digit first."""

    vocabulary = Vocabulary(kind="symbols", symbols=(*DIGITS, PLUS))

    def _draw(self, generator: random.Random) -> list[str]:
        # As in tensor2tensor: the first number may take half of the place, the
        # second what is left beside the plus sign.
        first = generator.randint(1, MAX_SYMBOLS // 2)
        second = generator.randint(1, MAX_SYMBOLS - first - 1)
        return [*_number(generator, first), PLUS, *_number(generator, second)]

    def _answer(self, inputs: list[str]) -> list[str]:
        plus = inputs.index(PLUS)
        numbers = (inputs[:plus], inputs[plus + 1 :])
        total = sum(int("".join(reversed(number))) for number in numbers)
        return list(reversed(str(total)))


def _number(generator: random.Random, length: int) -> list[str]:
    """Draws a number of `length` digits, lowest first, no zero in front of it."""
    if length == 1:
        return [generator.choice(DIGITS)]
    lower = generator.choices(DIGITS, k=length - 1)
    return [*lower, generator.choice(DIGITS[1:])]
