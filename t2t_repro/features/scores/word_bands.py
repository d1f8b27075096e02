"""Scores of short and long sentences."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from sacrebleu.metrics import CHRF

from t2t_repro.choices import AUTO_TOKENIZER
from t2t_repro.constants import TARGETS
from t2t_repro.data.pipeline import read_examples, readable
from t2t_repro.data.prepared import PreparedData
from t2t_repro.settings.prepare_settings import PrepareSettings
from t2t_repro.translation_scores import (
    DEFAULT_TOKENIZER,
    bleu_metric,
    chosen_tokenizer,
    sentence_metric,
)

# Largest number of words in each band; the last band has no limit.
LENGTH_LIMITS = (5, 10, 15, 20, 30, 40, 60)


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
    starts = (0, *(limit + 1 for limit in LENGTH_LIMITS))
    bands = []
    for shortest, longest in zip(starts, (*LENGTH_LIMITS, None), strict=True):
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


# Largest frequency in each band; the last band has no limit.
FREQUENCY_LIMITS = (0, 1, 9, 99, 999)


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
    starts = (0, *(limit + 1 for limit in FREQUENCY_LIMITS))
    return tuple(
        WordBand(rarest, most, in_references[n], in_hypotheses[n], found[n])
        for n, (rarest, most) in enumerate(
            zip(starts, (*FREQUENCY_LIMITS, None), strict=True)
        )
        if in_references[n] or in_hypotheses[n]
    )


def _band_of(frequency: int) -> int:
    return sum(frequency > limit for limit in FREQUENCY_LIMITS)


MOST_PAIRS = 1_000_000  # about two minutes of one core
_BATCH = 512  # pairs


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
