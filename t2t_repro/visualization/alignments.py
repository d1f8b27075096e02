"""Word alignments from encoder-decoder attention, and their error rate.

A target word is linked to the source word with the most weight, in the mean over the
chosen heads of one layer. EOS is never linked. Two positions of the decoder know about
a target token: the one that predicts it, and the next one, which reads it. Garg et al.
(2019, "Jointly learning to align and translate") read the weights at the first; Chen et
al. (2020, "Accurate word alignment induction from neural machine translation") show
that the second is better.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np

from t2t_repro.errors import UserError
from t2t_repro.synthetic.alignment import WordAlignment, align_words
from t2t_repro.synthetic.grammar import sentences
from t2t_repro.visualization.attention import Attention, Span, merge_words

Link = tuple[int, int]  # source word, target word; both from 0
Attend = Callable[[str, str], Attention]
Position = Literal["predicting", "reading"]
POSITIONS: tuple[Position, Position] = ("predicting", "reading")


@dataclasses.dataclass(frozen=True)
class AlignmentHeads:
    """The weights that an alignment is read from.

    Attributes:
        layer: Layer of the decoder, from 1.
        heads: Heads, from 1, whose weights are averaged.
        position: Whether a target token is linked by the position that predicts it or
            by the position that reads it.
    """

    layer: int
    heads: tuple[int, ...]
    position: Position = "reading"

    def __str__(self) -> str:
        noun = "head" if len(self.heads) == 1 else "heads"
        numbers = ", ".join(map(str, self.heads))
        return f"layer {self.layer}, {noun} {numbers}, {self.position} the token"


def default_heads(attention: Attention) -> AlignmentHeads:
    """Return all heads of the last but one layer of the decoder.

    Garg et al. (2019) found that layer best for Transformers of six layers. Without
    reference alignments this is a convention, not a choice on data.
    """
    layers, heads = attention.memory.shape[:2]
    return AlignmentHeads(max(1, layers - 1), tuple(range(1, heads + 1)))


def alignment(attention: Attention, chosen: AlignmentHeads) -> list[Link]:
    """Return one link per target word, in the order of the target.

    Args:
        attention: Attention of a sentence pair.
        chosen: The weights to read.

    Raises:
        UserError: If the model has no such layer or head.
    """
    layers, heads = attention.memory.shape[:2]
    _check("layer", [chosen.layer], layers)
    _check("head", chosen.heads, heads)
    weights = _word_weights(attention, chosen.position)[chosen.layer - 1]
    rows = weights[[head - 1 for head in chosen.heads]].mean(axis=0)
    return [(int(word), index) for index, word in enumerate(rows.argmax(axis=-1))]


def pharaoh(links: Iterable[Link]) -> str:
    """Return links as a line such as "0-0 1-2": source word, target word, from 0."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


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


@dataclasses.dataclass(frozen=True)
class AlignmentScores:
    """Error rates of all heads on sentence pairs whose alignment is known.

    Attributes:
        heads: Error rate of every head by position, `[layer, head]`, from 0 to 1.
        layers: Error rate of the mean of all heads of a layer, by position, `[layer]`.
        diagonal: Error rate of linking words at the same relative place.
        sure: Share of target words with a sure link.
        cases: Number of sentence pairs.
    """

    heads: dict[Position, np.ndarray]
    layers: dict[Position, np.ndarray]
    diagonal: float
    sure: float
    cases: int

    def best(self) -> AlignmentHeads:
        """Return the head, or mean of all heads of a layer, with the lowest rate."""
        candidates = []
        for position in POSITIONS:
            rates, means = self.heads[position], self.layers[position]
            everything = tuple(range(1, rates.shape[1] + 1))
            for layer, head in np.ndindex(rates.shape):
                one = AlignmentHeads(layer + 1, (head + 1,), position)
                candidates.append((rates[layer, head], one))
            for layer, rate in enumerate(means):
                candidates.append(
                    (rate, AlignmentHeads(layer + 1, everything, position))
                )
        return min(candidates, key=lambda candidate: candidate[0])[1]

    def rows(self) -> list[list[str]]:
        """Return the error rates in percent as the rows of a table, with headings."""
        heads = range(1, self.heads["reading"].shape[1] + 1)
        names = [f"head {head}" for head in heads]
        rows = [["layer", "attention when", *names, "mean of heads"]]
        for layer, position in itertools.product(
            range(len(self.layers["reading"])), POSITIONS
        ):
            rates = [*self.heads[position][layer], self.layers[position][layer]]
            cells = [f"{100 * rate:.1f}" for rate in rates]
            rows.append([str(layer + 1), f"{position} the token", *cells])
        return rows

    def summary(self) -> str:
        """Return the number of cases and the baseline in one sentence."""
        return (
            f"Alignment error rate in % on {self.cases} sentence pairs; "
            f"{100 * self.sure:.1f} % of the target words have a sure link; linking "
            f"words at the same relative place: {100 * self.diagonal:.1f}."
        )


def alignment_scores(attend: Attend, cases: Iterable[AlignmentCase]) -> AlignmentScores:
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
    linked: dict[Position, list[np.ndarray]] = {position: [] for position in POSITIONS}
    for case in cases:
        attention = attend(case.source, case.target)
        for position in POSITIONS:
            weights = _word_weights(attention, position)
            means = weights.mean(axis=1, keepdims=True)
            together = np.concatenate([weights, means], axis=1)
            linked[position].append(together.argmax(axis=-1))
    rates = {position: _rates(linked[position], references) for position in POSITIONS}
    return AlignmentScores(
        heads={position: rates[position][:, :-1] for position in POSITIONS},
        layers={position: rates[position][:, -1] for position in POSITIONS},
        diagonal=alignment_error_rate(list(map(_diagonal, cases)), references),
        sure=_share_of_sure_words(cases),
        cases=len(cases),
    )


def _rates(
    linked: Sequence[np.ndarray], references: Sequence[WordAlignment]
) -> np.ndarray:
    """Return the error rates, `[layer, head]`, of words `[layer, head, target word]`."""
    rates = np.zeros(linked[0].shape[:2])
    for place in np.ndindex(rates.shape):
        links = [
            [(int(word), index) for index, word in enumerate(words[place])]
            for words in linked
        ]
        rates[place] = alignment_error_rate(links, references)
    return rates


def _diagonal(case: AlignmentCase) -> list[Link]:
    sources, targets = len(case.source.split()), len(case.target.split())
    return [
        (min(sources - 1, round(j * (sources - 1) / max(1, targets - 1))), j)
        for j in range(targets)
    ]


def _share_of_sure_words(cases: Sequence[AlignmentCase]) -> float:
    linked = sum(len({j for _, j in case.reference.sure}) for case in cases)
    return linked / sum(len(case.target.split()) for case in cases)


def _word_weights(attention: Attention, position: Position) -> np.ndarray:
    """Return the weights between words without EOS.

    Returns:
        `[layer, head, target word, source word]`.

    Raises:
        UserError: If the target has no words.
    """
    target = attention.target
    words = [span for span in target.words if target.tokens[span[0]] != _EOS]
    sources = [
        span
        for span in attention.source.words
        if attention.source.tokens[span[0]] != _EOS
    ]
    if not words:
        raise UserError(
            "received a translation without words, expected words to align: give the "
            "target."
        )
    if position == "reading":
        words = [_reading(span, len(target.tokens)) for span in words]
    return merge_words(attention.memory, words, sources)


_EOS = "</s>"


def _reading(span: Span, length: int) -> Span:
    """Return the positions that read a word; the last token may have no reader."""
    start, end = span
    return (min(start + 1, length - 1), min(end + 1, length))


def _check(kind: str, received: Sequence[int], count: int) -> None:
    for number in received:
        if not 1 <= number <= count:
            raise UserError(
                f"received {kind} {number}, expected a {kind} from 1 to {count}: the "
                f"decoder has {count} {kind}{'s' if count > 1 else ''}."
            )
    if not received:
        raise UserError(f"received no {kind}, expected at least one from 1 to {count}.")
