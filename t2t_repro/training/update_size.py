"""Plan the size of an update: replicas, tokens, and steps of accumulation."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class UpdateSize:
    """The tokens of one update, as replicas x tokens x steps.

    Attributes:
        replicas: Number of replicas, on all machines together.
        tokens: Tokens of the longer side per replica and step, including padding.
        steps: Number of steps whose gradients are added up to one update.
    """

    replicas: int
    tokens: int
    steps: int

    @classmethod
    def plan(cls, *, update_tokens: int, batch_size: int, replicas: int) -> UpdateSize:
        """Spread the tokens of an update over replicas and steps.

        There are as few steps as possible with at most `batch_size` tokens per replica
        and step, all of one size. So 25,000 tokens on one replica that holds 3,125 are
        8 steps, on two replicas 4, and on eight replicas 1. If the division leaves a
        remainder, an update is smaller by less than one token per replica and step.

        Args:
            update_tokens: Tokens of an update; 0 = one step of `batch_size` tokens
                per replica.
            batch_size: Largest number of tokens per replica and step.
            replicas: Number of replicas.
        """
        if not update_tokens:
            return cls(replicas, batch_size, 1)
        steps = -(-update_tokens // (batch_size * replicas))
        return cls(replicas, update_tokens // (replicas * steps), steps)

    @property
    def parts(self) -> int:
        """Number of equal parts into which the rows of an update are divided."""
        return self.replicas * self.steps

    def __str__(self) -> str:
        replicas = _counted(self.replicas, "replica")
        steps = _counted(self.steps, "step")
        return f"{replicas} x {self.tokens:,} tokens x {steps}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
