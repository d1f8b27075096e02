"""Scores of short and long sentences, and of rare and frequent words.

A word is a token of BLEU's tokenizer, with its case. Its matches in a sentence are the
smaller of its counts in the translation and in the reference. Neubig et al. 2019
(compare-mt) measure words by frequency in the same way.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sacrebleu.metrics import CHRF

from t2t_repro.constants import AUTO_TOKENIZER, TARGETS
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.translation_scores import (
    DEFAULT_TOKENIZER,
    bleu_metric,
    chosen_tokenizer,
    sentence_metric,
)

if TYPE_CHECKING:
    from t2t_repro.data.prepared import PreparedData

# Largest number in each band: words of a sentence, and frequency of a word. The last
# band has no limit.
LENGTH_LIMITS = (5, 10, 15, 20, 30, 40, 60)
FREQUENCY_LIMITS = (0, 1, 9, 99, 999)
MOST_PAIRS = 1_000_000  # about two minutes of one core
_BATCH = 512  # pairs


def _ranges(limits: Sequence[int]) -> list[tuple[int, int | None]]:
    """Return the smallest and the largest number of each band; None = no limit."""
    starts = (0, *(limit + 1 for limit in limits))
    return list(zip(starts, (*limits, None), strict=True))


def _band_of(number: int, limits: Sequence[int]) -> int:
    return sum(number > limit for limit in limits)


def _label(first: int, last: int | None) -> str:
    """Return a range for people, such as "6-10", "0" or "61+"."""
    if last is None:
        return f"{first}+"
    return str(first) if first == last else f"{first}-{last}"


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
        return _label(self.shortest, self.longest)


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
    bands: dict[int, list[int]] = {}
    for index, text in enumerate(measured):
        is_spaced = of_measured == DEFAULT_TOKENIZER
        words = text.split() if is_spaced else words_of(text, of_measured)
        bands.setdefault(_band_of(len(words), LENGTH_LIMITS), []).append(index)
    ranges, found = _ranges(LENGTH_LIMITS), []
    for band, chosen in sorted(bands.items()):
        streams = [hypotheses[i] for i in chosen], [[references[i] for i in chosen]]
        bleu = bleu_metric(tokenizer).corpus_score(*streams)
        chrf = CHRF().corpus_score(*streams).score
        ratio = bleu.sys_len / max(bleu.ref_len, 1)
        found.append(LengthBand(*ranges[band], len(chosen), bleu.score, chrf, ratio))
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class WordCounts:
    """Frequencies of the words of a text.

    Attributes:
        counts: Frequency by word.
        text: The text that was counted, such as "the training text".
    """

    counts: Mapping[str, int]
    text: str


@dataclasses.dataclass(frozen=True)
class WordBand:
    """Recall and precision of the words in a range of frequencies.

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
        return _label(self.rarest, self.most_frequent)

    @property
    def recall(self) -> float | None:
        """Percentage of the words in the references that are found."""
        return 100 * self.found / self.in_references if self.in_references else None

    @property
    def precision(self) -> float | None:
        """Percentage of the words in the translations that are correct."""
        return 100 * self.found / self.in_hypotheses if self.in_hypotheses else None


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
    totals = [Counter(), Counter(), Counter()]  # references, translations, both
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        written, true = (count_words([t], tokenizer) for t in (hypothesis, reference))
        for total, own in zip(totals, (true, written, true & written), strict=True):
            for word, number in own.items():
                total[_band_of(counts.get(word, 0), FREQUENCY_LIMITS)] += number
    return tuple(
        WordBand(*limits, *(total[band] for total in totals))
        for band, limits in enumerate(_ranges(FREQUENCY_LIMITS))
        if any(total[band] for total in totals)
    )


def count_training_words(
    data: PreparedData,
    advance: Callable[[int], object] = lambda count: None,
    tokenizer: str = DEFAULT_TOKENIZER,
) -> WordCounts | None:
    """Count the words of the training targets, in the shards.

    The shards hold an even sample of the text, so their first `MOST_PAIRS` pairs are
    enough. Copies of a pair for the sampling of subwords count once.

    Args:
        data: Prepared data of the problem.
        advance: Called with the number of pairs counted since the last call.
        tokenizer: sacreBLEU's tokenizer, which finds the words.

    Returns:
        The counts, or None if there is no training text in the data.

    Raises:
        UserError: If a file is missing or damaged.
    """
    if "train" not in data.splits:
        return None
    from t2t_repro.data.pipeline import read_examples, readable

    shards = data.shards("train")
    _, subwords = data.tokenizers()
    targets = read_examples(shards).map(lambda pair: pair[TARGETS]).take(MOST_PAIRS)
    counts: Counter[str] = Counter()
    pairs = 0
    for batch in readable(targets.ragged_batch(_BATCH)):
        texts = [subwords.decode(ids) for ids in batch.to_list()]
        counts.update(count_words(texts, tokenizer))
        pairs += len(texts)
        advance(len(texts))
    copies = PrepareSettings.value_in(data.manifest.settings, "subword_copies")
    once = {word: -(-count // copies) for word, count in counts.items()}
    return WordCounts(once, f"the training text ({-(-pairs // copies):,} pairs)")


def training_pairs_to_count(data: PreparedData) -> int:
    """Return the number of pairs that `count_training_words` reads."""
    counts = data.manifest.splits.get("train")
    return 0 if counts is None else min(counts.pairs_written, MOST_PAIRS)
