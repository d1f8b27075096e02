"""Error rates of alignments on the synthetic grammar, whose alignments are known."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from results.alignment import WordAlignment, align_words
from t2t_repro.features.attention_view.alignments import (
    AlignmentHeads,
    Link,
    align,
    head_choices,
)
from t2t_repro.features.attention_view.sentence_attention import Attention
from t2t_repro.features.synthetic.synthetic_corpus import sentences

# Returns the attention of a source and a target, such as `System.attention`.
Attend = Callable[[str, str], Attention]


@dataclasses.dataclass(frozen=True)
class AlignmentCase:
    """A sentence pair with its reference alignment."""

    source: str
    target: str
    reference: WordAlignment


def alignment_cases(split: str, count: int) -> Iterator[AlignmentCase]:
    """Yield the first sentence pairs of the synthetic grammar with their alignments.

    Args:
        split: "train", "dev" or "test"; a model has not seen "dev" and "test".
        count: Number of pairs.
    """
    for sentence in sentences(split, count):
        yield AlignmentCase(sentence.english, sentence.german, align_words(sentence))


def alignment_error_rate(
    aligned: Sequence[Iterable[Link]], references: Sequence[WordAlignment]
) -> float:
    """Return the error rate of Och and Ney (2003), from 0 to 1, over all sentences.

    1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|) for the links A, the sure links S and the
    possible links P, which contain S.
    """
    agreed = total = 0
    for links, reference in zip(map(set, aligned), references, strict=True):
        agreed += len(links & reference.sure) + len(links & reference.possible)
        total += len(links) + len(reference.sure)
    return 1.0 - agreed / total


@dataclasses.dataclass(frozen=True)
class AlignmentErrors:
    """Error rates of all heads on sentence pairs whose alignment is known.

    Attributes:
        rates: Error rate of every head and of the mean of each layer, from 0 to 1.
        diagonal: Error rate of linking words at the same relative place.
    """

    rates: dict[AlignmentHeads, float]
    diagonal: float

    def best(self) -> AlignmentHeads:
        """Return the heads with the lowest error rate."""
        return min(self.rates, key=self.rates.__getitem__)

    def rows(self) -> list[list[str]]:
        """Return the error rates in percent as the rows of a table, with headings."""
        groups = sorted({chosen.heads for chosen in self.rates}, key=_group_order)
        names = [f"head {g[0]}" if len(g) == 1 else "mean of heads" for g in groups]
        rows = [["layer", "weights where a word is", *names]]
        layers = sorted({chosen.layer for chosen in self.rates})
        for layer, reading in itertools.product(layers, (False, True)):
            rates = [self.rates[AlignmentHeads(layer, g, reading)] for g in groups]
            cells = [f"{100 * rate:.1f}" for rate in rates]
            rows.append([str(layer), "read" if reading else "predicted", *cells])
        return rows


def _group_order(heads: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return len(heads), heads


def alignment_errors(attend: Attend, cases: Iterable[AlignmentCase]) -> AlignmentErrors:
    """Score every head of the decoder, and the mean of the heads of each layer.

    Args:
        attend: Returns the attention of a source and a target, such as
            `System.attention`.
        cases: Sentence pairs.

    Raises:
        ValueError: If there is no case.
    """
    cases = list(cases)
    if not cases:
        raise ValueError("expected at least one case. Received: none")
    references = [case.reference for case in cases]
    linked: dict[AlignmentHeads, list[list[Link]]] = {}
    for case in cases:
        attention = attend(case.source, case.target)
        for chosen in head_choices(*attention.memory.shape[:2]):
            linked.setdefault(chosen, []).append(align(attention, chosen))
    return AlignmentErrors(
        rates={
            chosen: alignment_error_rate(links, references)
            for chosen, links in linked.items()
        },
        diagonal=alignment_error_rate(list(map(_diagonal, cases)), references),
    )


def _diagonal(case: AlignmentCase) -> list[Link]:
    last_source, last_target = (
        len(case.source.split()) - 1,
        len(case.target.split()) - 1,
    )
    return [
        (round(j * last_source / max(1, last_target)), j)
        for j in range(last_target + 1)
    ]
