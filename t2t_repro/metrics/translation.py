"""BLEU and chrF by sacreBLEU, each with its signature.

Differs from the papers, whose BLEU is of tokenised text with split compounds
(`metrics.moses`): sacreBLEU's signature makes a score repeatable.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence

from sacrebleu.metrics import CHRF

from t2t_repro.choices import AUTO_TOKENIZER
from t2t_repro.metrics.bleu_tokenizer import (
    DEFAULT_TOKENIZER,
    bleu_metric,
    chosen_tokenizer,
    sentence_metric,
)
from t2t_repro.text.lines import check_scored


@dataclasses.dataclass(frozen=True)
class Scores(abc.ABC):
    """All scores of a problem's outputs; a subclass has them as fields."""

    @abc.abstractmethod
    def lines(self, description: str) -> list[str]:
        """Return the scores that papers report, one per line.

        Args:
            description: The data and the decoder, such as "dev, beam 4".
        """


@dataclasses.dataclass(frozen=True)
class Score:
    """A score with its signature.

    Attributes:
        value: The score, 0 to 100.
        signature: Signature of sacreBLEU, which names case, tokeniser, smoothing
            and version.
    """

    value: float
    signature: str


@dataclasses.dataclass(frozen=True)
class TranslationScores(Scores):
    """Scores of translations against their references.

    Attributes:
        bleu: Cased BLEU; its signature names the tokenizer.
        bleu_lowercase: The same on lower-cased text.
        chrf: chrF2.
        length_ratio: Tokens of the translations, by BLEU's tokenizer, divided by tokens
            of the references; of several, the one that is nearest in length counts.
        sentences: Number of sentences.
    """

    bleu: Score
    bleu_lowercase: Score
    chrf: Score
    length_ratio: float
    sentences: int

    def lines(self, description: str) -> list[str]:
        """Return BLEU and chrF, one per line; see `Scores`."""
        return [
            f"BLEU on {description}: {self.bleu.value:.2f}  {self.bleu.signature}",
            f"chrF: {self.chrf.value:.2f}  {self.chrf.signature}",
        ]


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenizer: str = AUTO_TOKENIZER,
) -> float:
    """Return cased BLEU, 0 to 100; see `score_translations`."""
    metric = bleu_metric(chosen_tokenizer(tokenizer, references))
    return metric.corpus_score(list(hypotheses), [list(references)]).score


def sentence_bleu(
    hypothesis: str, reference: str, tokenizer: str = DEFAULT_TOKENIZER
) -> float:
    """Return cased BLEU of one sentence, 0 to 100.

    It leaves out n-grams that are longer than the translation (sacreBLEU's
    `effective_order`), so a perfect translation of two words has 100.
    """
    return sentence_metric(tokenizer).sentence_score(hypothesis, [reference]).score


def pairwise_bleu(
    translations: Sequence[str], tokenizer: str = DEFAULT_TOKENIZER
) -> list[list[float]]:
    """Return `sentence_bleu` of all translations (rows) against all (columns).

    Two empty translations are equal, so they have 100.
    """
    metric = sentence_metric(tokenizer)
    return [
        [
            metric.sentence_score(translation, [truth]).score
            if translation or truth
            else 100.0
            for truth in translations
        ]
        for translation in translations
    ]


def score_translations(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenizer: str = AUTO_TOKENIZER,
    other_references: Sequence[Sequence[str]] = (),
) -> TranslationScores:
    """Score translations by all metrics.

    Args:
        hypotheses: Untokenised translations.
        references: One untokenised reference per translation.
        tokenizer: Tokenizer of BLEU, one of `choices.BLEU_TOKENIZERS`.
        other_references: Further references, in streams of one per translation.

    Raises:
        UserError: If the numbers of sentences differ, or are zero, or the tokenizer
            needs a package that is not installed.
    """
    all_references = [references, *other_references]
    for stream in all_references:
        check_scored(hypotheses, stream, "translation")
    streams = list(hypotheses), [*map(list, all_references)]
    chosen = chosen_tokenizer(tokenizer, references)
    cased, lowercase = bleu_metric(chosen), bleu_metric(chosen, lowercase=True)
    chrf = CHRF()
    cased_score = cased.corpus_score(*streams)
    lowercase_score = lowercase.corpus_score(*streams)
    chrf_score = chrf.corpus_score(*streams)
    return TranslationScores(
        bleu=Score(cased_score.score, str(cased.get_signature())),
        bleu_lowercase=Score(lowercase_score.score, str(lowercase.get_signature())),
        chrf=Score(chrf_score.score, str(chrf.get_signature())),
        length_ratio=cased_score.sys_len / max(cased_score.ref_len, 1),
        sentences=len(hypotheses),
    )
