"""Counts of the pairs of a split while it is written."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from t2t_repro.data.encoding import EncodedBatch
from t2t_repro.data.filters import PairFilter
from t2t_repro.data.manifest import SplitCounts
from t2t_repro.errors import UserError


@dataclasses.dataclass
class RunningCounts:
    """Counts of the pairs of a split that were read and written.

    Attributes:
        read: Number of pairs that were read.
        source_subwords: Number of ids of the inputs that were written.
        target_subwords: Number of ids of the targets that were written.
        lengths: Number of pairs that were written, copies included, by the length of
            the longer side.
    """

    read: int = 0
    source_subwords: int = 0
    target_subwords: int = 0
    lengths: Counter[int] = dataclasses.field(default_factory=Counter)

    @property
    def written(self) -> int:
        """Number of pairs that were written, copies included."""
        return self.lengths.total()

    def add(self, batch: EncodedBatch, kept: np.ndarray) -> list[bytes]:
        """Count the pairs of a batch, and return the records to write.

        Args:
            batch: The pairs.
            kept: Return value of `PairFilter.kept`.
        """
        self.read += len(kept)
        examples, written = batch.examples, np.repeat(kept, batch.copies)
        sources = examples.source_lengths[written]
        targets = examples.target_lengths[written]
        self.source_subwords += int(sources.sum())
        self.target_subwords += int(targets.sum())
        self.lengths.update(np.maximum(sources, targets).tolist())
        return [*itertools.compress(examples.records, written)]

    def to_json(self) -> dict[str, Any]:
        """Return the counts in a form that JSON can hold."""
        return {**dataclasses.asdict(self), "lengths": sorted(self.lengths.items())}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read the output of `to_json`."""
        return cls(
            read=values["read"],
            source_subwords=values["source_subwords"],
            target_subwords=values["target_subwords"],
            lengths=Counter(dict(values["lengths"])),
        )

    def split_counts(
        self, split: str, pair_filter: PairFilter, shards: list[str]
    ) -> SplitCounts:
        """Return the counts of a split that is complete.

        Args:
            split: Name of the split.
            pair_filter: Filter of the pairs.
            shards: Names of the files.

        Raises:
            UserError: If no pair was written.
        """
        if not self.lengths:
            reasons = (f"{count:,} {why}" for why, count in pair_filter.dropped.items())
            raise UserError(
                f"no {split} pair is left of {self.read:,} "
                f"({', '.join(reasons) or 'none read'}): give other text or wider "
                "limits (max_pair_length, max_length_ratio)"
            )
        longest = max(self.lengths)
        return SplitCounts(
            pairs_read=self.read,
            pairs_written=self.written,
            dropped=dict(sorted(pair_filter.dropped.items())),
            source_subwords=self.source_subwords,
            target_subwords=self.target_subwords,
            pairs_by_length=[self.lengths[length] for length in range(longest + 1)],
            also_held_out=pair_filter.also_held_out,
            shards=shards,
        )
