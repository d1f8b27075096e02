"""Count operations and padding of updates, and compare the speeds of engines."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of a Transformer with as many encoder as decoder layers."""

    layers: int
    width: int
    filter: int
    heads: int


class Batch(NamedTuple):
    """A batch as `worker.py` reports it; tokens are real ones, including EOS."""

    rows: int
    source_length: int
    target_length: int
    source_tokens: int
    target_tokens: int

    @property
    def source_positions(self) -> int:
        """Positions of the source, including padding."""
        return self.rows * self.source_length

    @property
    def target_positions(self) -> int:
        """Positions of the target, including padding."""
        return self.rows * self.target_length


@dataclasses.dataclass(frozen=True)
class Round:
    """The updates that an engine made in its turn.

    Attributes:
        seconds: Time of all updates, including reading the data.
        batches: The batches.
    """

    seconds: float
    batches: tuple[Batch, ...]

    @classmethod
    def from_answer(cls, answer: dict[str, Any]) -> Round:
        """Read the answer of a worker."""
        batches = tuple(Batch(*counts) for counts in answer["batches"])
        return cls(answer["seconds"], batches)

    @property
    def tokens_per_second(self) -> float:
        """Real target tokens per second."""
        return sum(batch.target_tokens for batch in self.batches) / self.seconds


def padding_share(batches: Sequence[Batch]) -> float:
    """Return the share of all positions, on both sides, that are padding."""
    positions = sum(b.source_positions + b.target_positions for b in batches)
    tokens = sum(b.source_tokens + b.target_tokens for b in batches)
    return 1 - tokens / positions


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median over the rounds of our speed divided by theirs.

    Both were measured one after the other in each round, so that a machine that is
    slower in one round hardly changes its ratio.
    """
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def update_flops(shape: Shape, vocab_size: int, batch: Batch) -> float:
    """Count the operations in an update's matrix products, including padding.

    A multiplication and an addition count as two. Every product of the forward pass
    has two of the same size in the backward pass.

    Args:
        shape: Sizes of the model.
        vocab_size: Entries of the target vocabulary.
        batch: The batch.

    Returns:
        Floating-point operations.
    """
    width = shape.width
    feed_forward = 2 * width * shape.filter
    projections = 4 * width**2  # query, key, value, output
    # The decoder's attention to the source has keys and values per source position,
    # queries and outputs per target position.
    per_source = shape.layers * (projections + feed_forward + projections // 2)
    per_target = shape.layers * (projections + feed_forward + projections // 2)
    per_target += width * vocab_size
    source, target = batch.source_length, batch.target_length
    # Pairs of positions that attend to each other; query times key, weight times value.
    pairs = batch.rows * (source**2 + target**2 + source * target)
    products = (
        batch.source_positions * per_source
        + batch.target_positions * per_target
        + shape.layers * pairs * 2 * width
    )
    return 3.0 * 2.0 * products


def matmul_share(
    rounds: Sequence[Round], rates: Sequence[float], shape: Shape, vocab_size: int
) -> float:
    """Return the median share of the machine's matmul rate that an engine reaches.

    Args:
        rounds: The engine's rounds.
        rates: The matmul rate measured in each round, in operations per second.
        shape: Sizes of the model.
        vocab_size: Entries of the target vocabulary.
    """
    return statistics.median(
        sum(update_flops(shape, vocab_size, batch) for batch in turn.batches)
        / turn.seconds
        / rate
        for turn, rate in zip(rounds, rates, strict=True)
    )
