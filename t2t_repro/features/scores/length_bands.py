"""Scores of short and long sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sacrebleu.metrics import CHRF

from t2t_repro.choices import AUTO_TOKENIZER
from t2t_repro.features.scores.word_counts import words_of
from t2t_repro.translation_scores import (
    DEFAULT_TOKENIZER,
    bleu_metric,
    chosen_tokenizer,
)

# Largest number of words in each band; the last band has no limit.
LIMITS = (5, 10, 15, 20, 30, 40, 60)


@dataclasses.dataclass(frozen=True)
class LengthBand:
    """Scores of the sentences whose lengths are in a range.

    Attributes:
        shortest: Smallest number of words in the range.
        longest: Largest number of words in the range; None = no limit.
        sentences: Number of sentences, at least 1.
        bleu: Cased BLEU of these sentences.
        chrf: chrF2 of these sentences.
        length_ratio: Words of the translations per word of the references.
    """

    shortest: int
    longest: int | None
    sentences: int
    bleu: float
    chrf: float
    length_ratio: float

    @property
    def label(self) -> str:
        """The range, such as "6-10" or "61+"."""
        if self.longest is None:
            return f"{self.shortest}+"
        return f"{self.shortest}-{self.longest}"


def scores_by_length(
    measured: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenizer: str = DEFAULT_TOKENIZER,
) -> tuple[LengthBand, ...]:
    """Score the sentences of each range of lengths; empty ranges are left out.

    Args:
        measured: Texts whose words are counted: the sources, or the references if there
            are no sources. Words are separated by whitespace, or found by a tokenizer
            in texts without spaces.
        hypotheses: One translation per text.
        references: One reference per text.
        tokenizer: Tokenizer of BLEU.
    """
    of_measured = chosen_tokenizer(AUTO_TOKENIZER, measured)
    if of_measured == DEFAULT_TOKENIZER:
        lengths = [len(text.split()) for text in measured]
    else:
        lengths = [len(words_of(text, of_measured)) for text in measured]
    starts = (0, *(limit + 1 for limit in LIMITS))
    bands = []
    for shortest, longest in zip(starts, (*LIMITS, None), strict=True):
        chosen = [
            index
            for index, length in enumerate(lengths)
            if shortest <= length and (longest is None or length <= longest)
        ]
        if chosen:
            streams = [hypotheses[i] for i in chosen], [references[i] for i in chosen]
            bands.append(_band(shortest, longest, *streams, tokenizer))
    return tuple(bands)


def _band(
    shortest: int,
    longest: int | None,
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenizer: str,
) -> LengthBand:
    bleu = bleu_metric(tokenizer).corpus_score(hypotheses, [references])
    return LengthBand(
        shortest=shortest,
        longest=longest,
        sentences=len(hypotheses),
        bleu=bleu.score,
        chrf=CHRF().corpus_score(hypotheses, [references]).score,
        length_ratio=bleu.sys_len / max(bleu.ref_len, 1),
    )
