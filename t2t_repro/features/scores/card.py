"""The score card as data, made from texts alone: no model is needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics import CHRF

from t2t_repro.constants import AUTO_TOKENIZER
from t2t_repro.errors import UserError
from t2t_repro.features.scores.corpus_scores import NamedScore, corpus_scores
from t2t_repro.features.scores.word_bands import (
    LengthBand,
    WordBand,
    WordCounts,
    count_words,
    scores_by_length,
    words_by_frequency,
)
from t2t_repro.text.lines import check_scored, is_blank
from t2t_repro.translation_scores import (
    DEFAULT_TOKENIZER,
    bleu_metric,
    chosen_tokenizer,
    sentence_bleu,
)

EXAMPLES = 5


@dataclasses.dataclass(frozen=True)
class Faults:
    """Numbers of suspicious sentences, and of references of the same kind.

    Attributes:
        copies: Translations that are equal to their sources, apart from whitespace;
            None if there are no sources.
        copies_in_references: References that are equal to their sources; None if there
            are no sources.
        empty: Blank translations.
        empty_references: Blank references.
        loops: Translations with a repetition loop; see `DEFINITION`.
        loops_in_references: References with a repetition loop.
        identical: Translations that are equal to their references, apart from
            whitespace. This is not a fault.
    """

    copies: int | None
    copies_in_references: int | None
    empty: int
    empty_references: int
    loops: int
    loops_in_references: int
    identical: int


@dataclasses.dataclass(frozen=True)
class ScoreCard:
    """All scores of translations, and where the translations fail.

    Attributes:
        sentences: Number of sentences.
        language: Code of the target language, for Moses's tokenizer; None if it is
            not known.
        tokenizer: sacreBLEU's tokenizer, which also finds the words.
        scores: Scores of all sentences together.
        hypothesis_words: Number of tokens of the translations.
        reference_words: Number of tokens of the references.
        faults: Numbers of suspicious sentences.
        length_of: The texts whose lengths are in `by_length`: "source" or "reference".
        by_length: Scores by the length of the sentence.
        counted_in: The text whose words were counted for `by_frequency`.
        by_frequency: Precision and recall by the frequency of the word.
        chrf_histogram: Number of sentences per 10 points of sentence chrF2, from 0.
        best: The best sentences by chrF2.
        worst: The worst sentences by chrF2.
    """

    sentences: int
    language: str | None
    tokenizer: str
    scores: tuple[NamedScore, ...]
    hypothesis_words: int
    reference_words: int
    faults: Faults
    length_of: str
    by_length: tuple[LengthBand, ...]
    counted_in: str
    by_frequency: tuple[WordBand, ...]
    chrf_histogram: tuple[int, ...]
    best: tuple[ScoredSentence, ...]
    worst: tuple[ScoredSentence, ...]

    @property
    def length_ratio(self) -> float | None:
        """Words of the translations per word of the references."""
        if not self.reference_words:
            return None
        return self.hypothesis_words / self.reference_words

    def to_json(self) -> dict[str, Any]:
        """Return the card as values that JSON can hold."""
        values = dataclasses.asdict(self)
        values["length_ratio"] = self.length_ratio
        for band, written in zip(
            self.by_frequency, values["by_frequency"], strict=True
        ):
            written |= {"recall": band.recall, "precision": band.precision}
        return values


def make_card(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    training_words: WordCounts | None = None,
    language: str | None = None,
    examples: int = EXAMPLES,
    tokenizer: str = AUTO_TOKENIZER,
) -> ScoreCard:
    """Score translations in every way.

    Args:
        hypotheses: Untokenized translations.
        references: One untokenized reference per translation.
        sources: One source per translation, if they are known.
        training_words: Frequencies of words of the target language in the training
            text; by default, words are counted in the references.
        language: Code of the target language, for Moses's tokenizer. Without it, or if
            Moses does not know it, the papers' kinds of BLEU are left out.
        examples: Largest number of the best and of the worst sentences.
        tokenizer: Tokenizer of BLEU and of words, one of `constants.BLEU_TOKENIZERS`.

    Raises:
        UserError: If the numbers of sentences differ or are zero, or the tokenizer
            needs a package that is not installed.
    """
    check_scored(hypotheses, references, "translation")
    if sources is not None and len(sources) != len(hypotheses):
        raise UserError(
            f"received {len(hypotheses)} translations and {len(sources)} sources, "
            "expected equal numbers of both."
        )
    chosen = chosen_tokenizer(tokenizer, references, language)
    lengths = bleu_metric(chosen).corpus_score(list(hypotheses), [list(references)])
    words = training_words or WordCounts(
        count_words(references, chosen), "the references"
    )
    chrf = sentence_scores(hypotheses, references)
    best, worst = best_and_worst(
        chrf, hypotheses, references, sources, examples, chosen
    )
    measured = references if sources is None else sources
    return ScoreCard(
        sentences=len(hypotheses),
        language=language,
        tokenizer=chosen,
        scores=corpus_scores(hypotheses, references, language, chosen),
        hypothesis_words=lengths.sys_len,
        reference_words=lengths.ref_len,
        faults=_faults(hypotheses, references, sources),
        length_of="reference" if sources is None else "source",
        by_length=scores_by_length(measured, hypotheses, references, chosen),
        counted_in=words.text,
        by_frequency=words_by_frequency(hypotheses, references, words.counts, chosen),
        chrf_histogram=histogram(chrf),
        best=best,
        worst=worst,
    )


def _faults(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None,
) -> Faults:
    return Faults(
        copies=None if sources is None else _equal(hypotheses, sources),
        copies_in_references=None if sources is None else _equal(references, sources),
        empty=sum(map(is_blank, hypotheses)),
        empty_references=sum(map(is_blank, references)),
        loops=sum(map(has_loop, hypotheses)),
        loops_in_references=sum(map(has_loop, references)),
        identical=_equal(hypotheses, references),
    )


def _equal(texts: Sequence[str], others: Sequence[str]) -> int:
    """Count the nonblank texts whose words equal those of their counterparts."""
    pairs = zip(texts, others, strict=True)
    return sum(a.split() == b.split() != [] for a, b in pairs)


BINS = 10  # ranges of 10 points of chrF


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

    def texts(self) -> list[tuple[str, str]]:
        """Return the known texts with their names."""
        source = [] if self.source is None else [("source", self.source)]
        return [*source, ("reference", self.reference), ("output", self.hypothesis)]


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
    # Sorting is stable, so of equal lengths earlier lines come first.
    order = sorted(range(len(scores)), key=lambda i: -len(references[i]))
    worst = sorted(order, key=lambda i: scores[i])[: min(count, len(scores) // 2)]
    left = set(order).difference(worst)
    best = sorted((i for i in order if i in left), key=lambda i: -scores[i])[:count]

    def scored(chosen: Sequence[int]) -> tuple[ScoredSentence, ...]:
        return tuple(
            ScoredSentence(
                line=i + 1,
                source=None if sources is None else sources[i],
                reference=references[i],
                hypothesis=hypotheses[i],
                chrf=scores[i],
                bleu=sentence_bleu(hypotheses[i], references[i], tokenizer),
            )
            for i in chosen
        )

    return scored(best), scored(worst)


def histogram(scores: Sequence[float]) -> tuple[int, ...]:
    """Count the scores in `BINS` ranges of equal width; 100 is in the last one."""
    counts = [0] * BINS
    for score in scores:
        counts[min(int(score * BINS / 100), BINS - 1)] += 1
    return tuple(counts)


LONGEST = 8
WORD_REPEATS = 3
SHORTEST_SYLLABLE = 2  # one character repeats in "100000" and in "....."
SYLLABLE_REPEATS = 5
DEFINITION = (
    f"1 to {LONGEST} words at least {WORD_REPEATS} times directly after each other, or "
    f"{SHORTEST_SYLLABLE} to {LONGEST} characters of a word at least "
    f"{SYLLABLE_REPEATS} times"
)


def has_loop(text: str) -> bool:
    """Return whether a text has a repetition loop, as `DEFINITION` says.

    Words are separated by whitespace and compared with case and punctuation.
    """
    words = text.split()
    return any(
        _repeats(words, length, WORD_REPEATS) for length in range(1, LONGEST + 1)
    ) or any(
        _repeats(word, length, SYLLABLE_REPEATS)
        for word in set(words)
        for length in range(SHORTEST_SYLLABLE, LONGEST + 1)
    )


def _repeats(items: Sequence[str], length: int, times: int) -> bool:
    """Return whether a sequence of this length repeats this many times in a row."""
    if len(items) < length * times:
        return False
    needed, equal = length * (times - 1), 0
    for first, second in zip(items, items[length:], strict=False):
        equal = equal + 1 if first == second else 0
        if equal == needed:
            return True
    return False
