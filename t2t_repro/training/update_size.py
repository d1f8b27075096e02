"""Plan the size of an update: replicas, tokens, and accumulated micro-batches."""

from __future__ import annotations

import dataclasses

from t2t_repro.errors import UsageError
from t2t_repro.settings.hparams import HParams
from t2t_repro.text_tables import quantity


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
        longest = hparams.packed_length or hparams.max_length
        if hparams.update_tokens and size.tokens < longest:
            raise UsageError(
                f"received update_tokens={hparams.update_tokens}, which leaves {size}, "
                f"expected at least {longest} tokens: one row of the longest sentence "
                "must fit into a micro-batch."
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


def check_batch_size(hparams: HParams) -> None:
    """Refuse a batch that is smaller than one long sentence.

    Runs of earlier versions may have one, so only a new run is refused.

    Raises:
        UsageError: If `batch_size` is below `max_length`.
    """
    packed = hparams.packed_length
    name, longest = (
        ("packed_length", packed) if packed else ("max_length", hparams.max_length)
    )
    if hparams.batch_size < longest:
        raise UsageError(
            f"received batch_size={hparams.batch_size}, expected at least {name}="
            f"{longest} tokens: one long sentence must fit into a batch."
        )
