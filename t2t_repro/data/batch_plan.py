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
    def for_training(cls, hparams: HParams, num_replicas: int = 1) -> BatchPlan:
        """Plan the global batches of a training run.

        With `packed_length`, all batches have one shape, and their rows have several
        pairs. `batch_size` is then the padded tokens per replica of the target side.

        Args:
            hparams: The complete hparams.
            num_replicas: Number of replicas that share a global batch.
        """
        h = hparams
        if not h.packed_length:
            return cls.for_evaluation(h, num_replicas)
        rows = max(1, h.batch_size // h.packed_length) * num_replicas
        return cls((h.max_length,), (rows,), h.packed_length, h.packed_source_length)

    @classmethod
    def for_evaluation(cls, hparams: HParams, num_replicas: int = 1) -> BatchPlan:
        """Plan batches with a row per pair, of `batch_size` padded tokens per replica.

        Differs from tensor2tensor (`data_reader.py: batching_scheme`): a length equal
        to a boundary belongs to that boundary's bucket, since padding goes to the
        boundary itself. Rows are not rounded down to a divisor of a window size, which
        would waste up to a quarter of a batch.

        Args:
            hparams: The complete hparams.
            num_replicas: Number of replicas that share a global batch.
        """
        h = hparams
        boundaries = bucket_boundaries(
            h.max_length, h.min_length_bucket, h.length_bucket_step
        )
        rows = tuple(max(1, h.batch_size // b) * num_replicas for b in boundaries)
        return cls(boundaries, rows)


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
    def of(cls, hparams: HParams, replicas: int) -> UpdateSize:
        """Divide the tokens of an update among replicas and micro-batches.

        There are as few micro-batches as possible with at most `batch_size` tokens per
        replica, all of one size. So 25,000 tokens on one replica that holds 3,125 are
        8 micro-batches, on two replicas 4, and on eight replicas 1. If the division
        leaves a remainder, an update is smaller by less than one token per replica and
        micro-batch. Without `update_tokens`, an update is one micro-batch of
        `batch_size` tokens per replica.

        Args:
            hparams: Hparams of the model.
            replicas: Number of replicas, on all machines together.

        Raises:
            UsageError: If one long sentence does not fit into a micro-batch.
        """
        size = cls(replicas, hparams.batch_size, 1)
        if hparams.update_tokens:
            count = -(-hparams.update_tokens // (hparams.batch_size * replicas))
            size = cls(replicas, hparams.update_tokens // (replicas * count), count)
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
