"""Hypotheses of the search with their log-probabilities."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from t2t_repro.decoding.hypothesis import Hypothesis, length_penalty
from t2t_repro.decoding.sentences import longest_piece
from t2t_repro.runs.translating import TranslatingSystem
from t2t_repro.settings.decode_hparams import DecodeHParams


@dataclasses.dataclass(frozen=True)
class RankedHypothesis:
    """One of the best translations of a sentence.

    Attributes:
        rank: 1 for the best.
        text: The translation.
        score: Log-probability divided by the length penalty, plus the coverage penalty
            if there is one, in nats. None for a consensus, which the model did not
            write.
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
    system: TranslatingSystem,
    source: str,
    hypotheses: Sequence[Hypothesis],
    decode_hparams: DecodeHParams,
) -> list[RankedHypothesis]:
    """Add ranks and log-probabilities to the hypotheses of a sentence.

    Args:
        system: System that translated.
        source: The sentence.
        hypotheses: Its translations, best first.
        decode_hparams: Settings of the search.
    """
    hparams = system.with_problem_defaults(decode_hparams)
    if hparams.mbr_consensus:
        return [
            RankedHypothesis(place, hypothesis.text, None, None, None)
            for place, hypothesis in enumerate(hypotheses, start=1)
        ]
    ids = system.source_tokenizer.encode(system.problem.normalize_source(source))
    is_sum = len(ids) > longest_piece(system.max_input_length)
    is_sum = is_sum or bool(hparams.coverage_penalty)
    return [
        RankedHypothesis(
            rank=place,
            text=hypothesis.text,
            score=hypothesis.score,
            log_prob=None if is_sum else _log_prob(hypothesis, hparams.alpha),
            tokens=len(hypothesis.ids),
        )
        for place, hypothesis in enumerate(hypotheses, start=1)
    ]


def _log_prob(hypothesis: Hypothesis, alpha: float) -> float:
    return hypothesis.score * length_penalty(len(hypothesis.ids), alpha)
