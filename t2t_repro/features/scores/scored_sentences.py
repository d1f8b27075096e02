"""Scores of single sentences: the best, the worst, and how many have which score."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sacrebleu.metrics import CHRF

from t2t_repro.translation_scores import DEFAULT_TOKENIZER, sentence_bleu

BINS = 10  # of 10 points of chrF each


@dataclasses.dataclass(frozen=True)
class ScoredSentence:
    """A sentence with its scores.

    Attributes:
        line: Number of the line, from 1.
        source: The source; None if it is not known.
        reference: The reference.
        hypothesis: The translation.
        chrf: chrF2 of the sentence.
        bleu: Cased BLEU of the sentence; see `sentence_bleu`.
    """

    line: int
    source: str | None
    reference: str
    hypothesis: str
    chrf: float
    bleu: float


def sentence_scores(
    hypotheses: Sequence[str], references: Sequence[str]
) -> list[float]:
    """Return chrF2 of each sentence."""
    metric = CHRF()
    return [
        metric.sentence_score(hypothesis, [reference]).score
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


def best_and_worst(
    scores: Sequence[float],
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None,
    count: int,
    tokenizer: str = DEFAULT_TOKENIZER,
) -> tuple[tuple[ScoredSentence, ...], tuple[ScoredSentence, ...]]:
    """Return the best and the worst sentences by chrF2; no sentence is in both.

    Of equal scores, those with the longer reference come first, then those on earlier
    lines.

    Args:
        scores: chrF2 of each sentence.
        hypotheses: Translations.
        references: References.
        sources: Sources, if they are known.
        count: Largest number of sentences in each list.
        tokenizer: Tokenizer of BLEU.

    Returns:
        The best sentences, best first; the worst sentences, worst first.
    """

    def scored(index: int) -> ScoredSentence:
        return ScoredSentence(
            line=index + 1,
            source=None if sources is None else sources[index],
            reference=references[index],
            hypothesis=hypotheses[index],
            chrf=scores[index],
            bleu=sentence_bleu(hypotheses[index], references[index], tokenizer),
        )

    def order(index: int) -> tuple[float, int, int]:
        return -scores[index], -len(references[index]), index

    def worst_order(index: int) -> tuple[float, int, int]:
        return scores[index], -len(references[index]), index

    worst = sorted(range(len(scores)), key=worst_order)[: min(count, len(scores) // 2)]
    rest = set(range(len(scores))) - set(worst)
    best = sorted(rest, key=order)[:count]
    return tuple(map(scored, best)), tuple(map(scored, worst))


def histogram(scores: Sequence[float]) -> tuple[int, ...]:
    """Count the scores in `BINS` ranges of equal width; 100 is in the last one."""
    counts = [0] * BINS
    for score in scores:
        counts[min(int(score * BINS / 100), BINS - 1)] += 1
    return tuple(counts)
