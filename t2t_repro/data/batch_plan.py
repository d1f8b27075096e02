"""The size of updates and the shapes of batches, known before training.

Imports no TensorFlow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from t2t_repro.constants import PAD_ID
from t2t_repro.errors import UsageError
from t2t_repro.settings.hparams import HParams
from t2t_repro.text_tables import quantity


@dataclasses.dataclass(frozen=True)
class BatchPlan:
    """The few shapes that batches can have, known before training.

    Attributes:
        boundaries: Padded lengths in tokens, ascending. A pair belongs to the first
            boundary that its longer side does not exceed.
        rows: Number of rows in a global batch, for each boundary.
        packed_length: Tokens per side of a row that holds several pairs, none of them
            longer than the only boundary; 0 if each row holds one pair.
        packed_source_length: Tokens of the source side of such a row, if it is shorter;
            0 = packed_length.
    """

    boundaries: tuple[int, ...]
    rows: tuple[int, ...]
    packed_length: int = 0
    packed_source_length: int = 0

    @property
    def packed_lengths(self) -> tuple[int, int]:
        """Tokens of both sides of a packed row, source and target."""
        return self.packed_source_length or self.packed_length, self.packed_length

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Rows and length, of the longer side, of every kind of global batch."""
        lengths = (self.packed_length,) if self.packed_length else self.boundaries
        return [*zip(self.rows, lengths, strict=True)]

    @classmethod
    def from_token_budget(
        cls,
        *,
        batch_size: int,
        max_length: int,
        min_length_bucket: int,
        length_bucket_step: float,
        num_replicas: int = 1,
    ) -> BatchPlan:
        """Plan batches of `batch_size` padded tokens per replica.

        Differs from tensor2tensor (`data_reader.py: batching_scheme`): a length equal
        to a boundary belongs to that boundary's bucket, since padding goes to the
        boundary itself. Rows are not rounded down to a divisor of a window size, which
        would waste up to a quarter of a batch.

        Args:
            batch_size: Tokens per replica of the longer side, including padding.
            max_length: Length of the longest side in tokens, including EOS.
            min_length_bucket: Shortest boundary in tokens.
            length_bucket_step: Ratio of neighbouring boundaries.
            num_replicas: Number of replicas that share a global batch.

        Returns:
            The plan.
        """
        boundaries = bucket_boundaries(
            max_length, min_length_bucket, length_bucket_step
        )
        rows = tuple(max(1, batch_size // b) * num_replicas for b in boundaries)
        return cls(boundaries, rows)

    @classmethod
    def packed(
        cls,
        *,
        batch_size: int,
        max_length: int,
        packed_length: int,
        packed_source_length: int = 0,
        num_replicas: int = 1,
    ) -> BatchPlan:
        """Plan batches of one shape, whose rows have several pairs.

        Args:
            batch_size: Tokens per replica of the target side, including padding.
            max_length: Length of the longest side of a pair in tokens, including EOS.
            packed_length: Tokens per side of a row, at least `max_length`.
            packed_source_length: Tokens of the source side, if it is shorter; 0 =
                packed_length.
            num_replicas: Number of replicas that share a global batch.

        Returns:
            The plan.
        """
        rows = max(1, batch_size // packed_length) * num_replicas
        return cls((max_length,), (rows,), packed_length, packed_source_length)

    @classmethod
    def for_training(cls, hparams: HParams, num_replicas: int = 1) -> BatchPlan:
        """Plan the global batches of a training run.

        Args:
            hparams: The complete hparams.
            num_replicas: Number of replicas that share a global batch.
        """
        if not hparams.packed_length:
            return cls.for_evaluation(hparams, num_replicas)
        return cls.packed(
            batch_size=hparams.batch_size,
            max_length=hparams.max_length,
            packed_length=hparams.packed_length,
            packed_source_length=hparams.packed_source_length,
            num_replicas=num_replicas,
        )

    @classmethod
    def for_evaluation(cls, hparams: HParams, num_replicas: int = 1) -> BatchPlan:
        """Plan batches with a row per pair.

        Args:
            hparams: The complete hparams.
            num_replicas: Number of replicas that share a global batch.
        """
        return cls.from_token_budget(
            batch_size=hparams.batch_size,
            max_length=hparams.max_length,
            min_length_bucket=hparams.min_length_bucket,
            length_bucket_step=hparams.length_bucket_step,
            num_replicas=num_replicas,
        )


def batches_by_length(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Divide texts into batches with a row per text, padded to the longest of them.

    The longest come first, to show at once whether there is enough memory.

    Args:
        lengths: Tokens of each text.
        batch_size: Tokens of a batch with padding, unless one text has more.

    Yields:
        The indices of the texts of a batch, longest first.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    start = 0
    while start < len(order):
        end = start + max(1, batch_size // lengths[order[start]])
        yield order[start:end]
        start = end


def padded(
    rows: Sequence[Sequence[int]], length: int, padding: int = PAD_ID
) -> np.ndarray:
    """Put rows of ids into an array, int32 `[len(rows), length]`."""
    array = np.full((len(rows), length), padding, np.int32)
    for place, row in zip(array, rows, strict=True):
        place[: len(row)] = row
    return array


def shapes_text(shapes: Iterable[tuple[int, int]]) -> str:
    """Return rows and length of batches as text, such as "64 x 32, 40 x 51"."""
    return ", ".join(f"{rows} x {length}" for rows, length in shapes)


def bucket_boundaries(
    max_length: int, min_length_bucket: int, length_bucket_step: float
) -> tuple[int, ...]:
    """Space boundaries geometrically by tensor2tensor's rule, `max_length` last.

    x starts at `min_length_bucket` and becomes max(x + 1, floor(x * step)).
    """
    boundaries = []
    length = min_length_bucket
    while length < max_length:
        boundaries.append(length)
        length = max(length + 1, int(length * length_bucket_step))
    return (*boundaries, max_length)


@dataclasses.dataclass(frozen=True)
class UpdateSize:
    """The tokens of one update, as replicas x tokens x micro-batches.

    Attributes:
        replicas: Number of replicas, on all machines together.
        tokens: Tokens of the longer side per replica and micro-batch, with padding.
        micro_batches: Number of micro-batches whose gradients are added up.
    """

    replicas: int
    tokens: int
    micro_batches: int

    @classmethod
    def plan(cls, *, update_tokens: int, batch_size: int, replicas: int) -> UpdateSize:
        """Spread the tokens of an update over replicas and micro-batches.

        There are as few micro-batches as possible with at most `batch_size` tokens per
        replica, all of one size. So 25,000 tokens on one replica that holds 3,125 are
        8 micro-batches, on two replicas 4, and on eight replicas 1. If the division
        leaves a remainder, an update is smaller by less than one token per replica and
        micro-batch.

        Args:
            update_tokens: Tokens of an update; 0 = one micro-batch of `batch_size`
                tokens per replica.
            batch_size: Largest number of tokens per replica and micro-batch.
            replicas: Number of replicas.
        """
        if not update_tokens:
            return cls(replicas, batch_size, 1)
        count = -(-update_tokens // (batch_size * replicas))
        return cls(replicas, update_tokens // (replicas * count), count)

    @classmethod
    def of(cls, hparams: HParams, replicas: int) -> UpdateSize:
        """Plan the updates of a training run; see `plan`.

        Args:
            hparams: Hparams of the model.
            replicas: Number of replicas, on all machines together.

        Raises:
            UsageError: If one long sentence does not fit into a micro-batch.
        """
        size = cls.plan(
            update_tokens=hparams.update_tokens,
            batch_size=hparams.batch_size,
            replicas=replicas,
        )
        longest = "packed_length" if hparams.packed_length else "max_length"
        if size.tokens < getattr(hparams, longest):
            given = "update_tokens" if hparams.update_tokens else "batch_size"
            raise UsageError(
                f"received {given}={getattr(hparams, given)}, which gives {size}, "
                f"expected at least {longest}={getattr(hparams, longest)} tokens: one "
                "row of the longest sentence must fit into a micro-batch."
            )
        return size

    @property
    def parts(self) -> int:
        """Number of equal parts into which the rows of an update are divided."""
        return self.replicas * self.micro_batches

    def __str__(self) -> str:
        replicas = quantity(self.replicas, "replica")
        count = quantity(self.micro_batches, "micro-batch", "micro-batches")
        return f"{replicas} x {self.tokens:,} tokens x {count}"
