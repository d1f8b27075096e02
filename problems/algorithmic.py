"""Tasks on decimal digits: small, endless, and with one right answer."""

from __future__ import annotations

import random

from t2t_repro.data.algorithmic import (
    DIGITS,
    MAX_SYMBOLS,
    AlgorithmicProblem,
    SequenceProblem,
)
from t2t_repro.data.problem import Vocabulary
from t2t_repro.registry import register_problem

PLUS = "+"


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
