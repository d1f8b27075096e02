"""Hypotheses of a sentence: their scores, their ranks, and the choice among them."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from t2t_repro.settings.decode_hparams import DecodeHParams


def length_penalty(length: Any, alpha: float) -> Any:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14).

    Args:
        length: Number of tokens, including EOS: a number, or an array or tensor of
            floats.
        alpha: Exponent.

    Returns:
        The penalty, of the shape of `length`.
    """
    return ((5.0 + length) / 6.0) ** alpha


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        text: The translation.
        score: Log-probability divided by the length penalty, plus any coverage penalty,
            in nats.
        repairs: Repairs of the model's output; see `Output`.
        ids: The ids that the model wrote, with EOS if it wrote one. If the source was
            cut into pieces, their ids follow each other.
        pieces: Number of the source's pieces; `score` is the sum of theirs.
    """

    text: str
    score: float
    repairs: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    pieces: int = 1


def count_repairs(hypotheses: Sequence[Hypothesis]) -> dict[str, int]:
    """Count the outputs per kind of repair, most frequent first."""
    faults = Counter(fault for best in hypotheses for fault in best.repairs)
    return dict(faults.most_common())


Similarities = Callable[[Sequence[str]], Sequence[Sequence[float]]]
Consensus = Callable[[Sequence[str], Sequence[float]], str]


def rank_by_expected_similarity(
    hypotheses: Sequence[Hypothesis], scale: float, similarities: Similarities
) -> list[Hypothesis]:
    """Sort hypotheses by their expected similarity to the true output, highest first.

    Minimum Bayes risk (Kumar and Byrne 2004) over the hypotheses of a beam, with
    -similarity as the loss:

        sum_j w_j similarity(h_i, h_j),   w_j proportional to exp(scale * score_j)

    Args:
        hypotheses: Different outputs for one sentence, best score first.
        scale: Factor of the scores. Large values choose the best score, and 0 weighs
            all hypotheses alike.
        similarities: Returns the similarity of every output (rows) to every output
            as the truth (columns).

    Returns:
        The same hypotheses. Of equal ones, the one with the better score is first.
    """
    weights = _weights(hypotheses, scale)
    table = similarities([hypothesis.text for hypothesis in hypotheses])
    expected = [sum(map(operator.mul, weights, row)) for row in table]
    order = sorted(range(len(expected)), key=lambda place: -expected[place])
    return [hypotheses[place] for place in order]


def with_consensus(
    hypotheses: Sequence[Hypothesis], scale: float, consensus: Consensus
) -> list[Hypothesis]:
    """Replace the text of the first hypothesis by the consensus of all of them.

    Args:
        hypotheses: Different outputs for one sentence.
        scale: Factor of the scores; see `rank_by_expected_similarity`.
        consensus: Combines outputs by their weights.

    Returns:
        The hypotheses. The first one keeps its score, and its repairs and ids only if
        its text stays.
    """
    first, *others = hypotheses
    texts = [hypothesis.text for hypothesis in hypotheses]
    agreed = consensus(texts, _weights(hypotheses, scale))
    if agreed != first.text:
        first = Hypothesis(agreed, first.score)
    return [first, *others]


def _weights(hypotheses: Sequence[Hypothesis], scale: float) -> list[float]:
    """Return exp(scale * score) of each hypothesis, over that of the best score."""
    best = max(hypothesis.score for hypothesis in hypotheses)
    return [math.exp(scale * (h.score - best)) for h in hypotheses]


@dataclasses.dataclass(frozen=True)
class RankedHypothesis:
    """One of the best translations of a sentence.

    Attributes:
        rank: 1 for the best.
        text: The translation.
        score: Log-probability divided by the length penalty, plus any coverage penalty,
            in nats. None for a consensus, which the model did not write.
        log_prob: Log-probability of the tokens, in nats. None without a score, if the
            source was translated in pieces, or if there is a coverage penalty: the
            score is then a sum.
        tokens: Number of tokens that the model wrote, including the end of sentence.
            None without a score.
    """

    rank: int
    text: str
    score: float | None
    log_prob: float | None
    tokens: int | None


def rank(
    hypotheses: Sequence[Hypothesis], hparams: DecodeHParams
) -> list[RankedHypothesis]:
    """Add ranks and log-probabilities to the hypotheses of a sentence.

    Args:
        hypotheses: Its translations, best first.
        hparams: Settings of the search, with the problem's defaults.
    """
    return [
        RankedHypothesis(place, hypothesis.text, None, None, None)
        if hparams.mbr_consensus
        else RankedHypothesis(
            rank=place,
            text=hypothesis.text,
            score=hypothesis.score,
            log_prob=_log_prob(hypothesis, hparams),
            tokens=len(hypothesis.ids),
        )
        for place, hypothesis in enumerate(hypotheses, start=1)
    ]


def _log_prob(hypothesis: Hypothesis, hparams: DecodeHParams) -> float | None:
    if hypothesis.pieces > 1 or hparams.coverage_penalty:
        return None
    return hypothesis.score * length_penalty(len(hypothesis.ids), hparams.alpha)
