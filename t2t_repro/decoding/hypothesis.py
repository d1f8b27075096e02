"""A translation of a sentence, as a search found it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        text: The translation.
        score: Log-probability divided by the length penalty, plus the coverage penalty
            if there is one, in nats.
        repairs: Repairs of the model's output; see `Output`.
        ids: The ids that the model wrote, with EOS if it wrote one. If the source was
            cut into pieces, their ids follow each other.
    """

    text: str
    score: float
    repairs: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()


def count_repairs(hypotheses: Sequence[Hypothesis]) -> dict[str, int]:
    """Count the outputs per kind of repair, most frequent first."""
    faults = Counter(fault for best in hypotheses for fault in best.repairs)
    return dict(faults.most_common())
