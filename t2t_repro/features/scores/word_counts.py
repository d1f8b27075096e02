"""Precision and recall of rare and frequent words.

A word is a token of BLEU's tokenizer, with its case. Its matches in a
sentence are the smaller of its counts in the translation and in the reference.
Neubig et al. 2019 (compare-mt) measure words by frequency in the same way.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from t2t_repro.translation_scores import DEFAULT_TOKENIZER, sentence_metric

# Largest frequency in each band; the last band has no limit.
LIMITS = (0, 1, 9, 99, 999)


@dataclasses.dataclass(frozen=True)
class WordCounts:
    """How often each word is in a text.

    Attributes:
        counts: Frequency by word.
        text: The text that was counted, such as "the training text".
    """

    counts: Mapping[str, int]
    text: str


@dataclasses.dataclass(frozen=True)
class WordBand:
    """How well the words whose frequencies are in a range are translated.

    Attributes:
        rarest: Smallest frequency in the range.
        most_frequent: Largest frequency in the range; None = no limit.
        in_references: Number of these words in the references.
        in_hypotheses: Number of these words in the translations.
        found: Number of these words in both, sentence by sentence.
    """

    rarest: int
    most_frequent: int | None
    in_references: int
    in_hypotheses: int
    found: int

    @property
    def label(self) -> str:
        """The range, such as "2-9" or "1000+"."""
        if self.most_frequent is None:
            return f"{self.rarest}+"
        if self.rarest == self.most_frequent:
            return str(self.rarest)
        return f"{self.rarest}-{self.most_frequent}"

    @property
    def recall(self) -> float | None:
        """Percentage of the words in the references that are found."""
        return _percentage(self.found, self.in_references)

    @property
    def precision(self) -> float | None:
        """Percentage of the words in the translations that are correct."""
        return _percentage(self.found, self.in_hypotheses)


def _percentage(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def words_of(text: str, tokenizer: str = DEFAULT_TOKENIZER) -> list[str]:
    """Return the words of a text."""
    return sentence_metric(tokenizer).tokenizer(text).split()


def count_words(
    texts: Iterable[str], tokenizer: str = DEFAULT_TOKENIZER
) -> Counter[str]:
    """Count the words of texts."""
    return Counter(word for text in texts for word in words_of(text, tokenizer))


def words_by_frequency(
    hypotheses: Sequence[str],
    references: Sequence[str],
    counts: Mapping[str, int],
    tokenizer: str = DEFAULT_TOKENIZER,
) -> tuple[WordBand, ...]:
    """Measure the words of each range of frequencies; empty ranges are left out.

    Args:
        hypotheses: Translations.
        references: One reference per translation.
        counts: Frequency by word; 0 for all others.
        tokenizer: Tokenizer of the words.
    """
    in_hypotheses, in_references, found = Counter(), Counter(), Counter()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        written, true = (
            Counter(words_of(text, tokenizer)) for text in (hypothesis, reference)
        )
        for total, own in (
            (in_hypotheses, written),
            (in_references, true),
            (found, written & true),
        ):
            for word, number in own.items():
                total[_band_of(counts.get(word, 0))] += number
    starts = (0, *(limit + 1 for limit in LIMITS))
    return tuple(
        WordBand(rarest, most, in_references[n], in_hypotheses[n], found[n])
        for n, (rarest, most) in enumerate(zip(starts, (*LIMITS, None), strict=True))
        if in_references[n] or in_hypotheses[n]
    )


def _band_of(frequency: int) -> int:
    return sum(frequency > limit for limit in LIMITS)
