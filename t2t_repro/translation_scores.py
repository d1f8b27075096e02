"""BLEU and chrF by sacreBLEU, each with its signature.

Differs from the papers, whose BLEU is of tokenized text with split compounds
(`features/scores/corpus_scores.py`): sacreBLEU's signature makes a score repeatable.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import importlib.util
import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from t2t_repro.constants import AUTO_TOKENIZER
from t2t_repro.errors import UserError
from t2t_repro.text.lines import check_scored

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU

logger = logging.getLogger(__name__)


DEFAULT_TOKENIZER = "13a"
# Tokenizer -> a module that it needs, and sacreBLEU's extra that installs the module.
_PACKAGES = {"ja-mecab": ("MeCab", "ja"), "ko-mecab": ("mecab_ko", "ko")}
# The tokenizer of a language, and the one to use if its package is not installed.
_CHINESE, _CHARACTERS = ("zh", "zh"), ("char", "char")
_JAPANESE, _KOREAN = ("ja-mecab", "char"), ("ko-mecab", DEFAULT_TOKENIZER)
_LANGUAGES = {  # by codes of ISO 639-1 and 639-3
    **dict.fromkeys(("zh", "zho", "cmn", "yue"), _CHINESE),
    **dict.fromkeys(("ja", "jpn"), _JAPANESE),
    **dict.fromkeys(("ko", "kor"), _KOREAN),
    **dict.fromkeys(("th", "tha", "lo", "lao", "km", "khm", "my", "mya"), _CHARACTERS),
}
_KANA = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_HAN_OR_KANA = re.compile(
    "[\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U000323af]"
)
_SOUTH_EAST_ASIAN = re.compile(  # Thai, Lao, Burmese, Khmer
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f]"
)
# Characters between two spaces, on average, above which a text has no spaces between
# words. Segmented Chinese has about 1.7, Thai 4 and German 6.
_LONGEST_CHINESE, _LONGEST_SOUTH_EAST_ASIAN, _LONGEST_OTHER = 3.5, 9, 20
_SAMPLE = 1_000  # lines
_FEWEST_WORDS = 10


def bleu_metric(
    tokenizer: str,
    *,
    lowercase: bool = False,
    effective_order: bool = False,
    references: Sequence[Sequence[str]] | None = None,
) -> BLEU:
    """Return sacreBLEU's BLEU with a tokenizer and other arguments of its class.

    Raises:
        UserError: If the tokenizer needs a package or a file that is not there.
    """
    # It takes long to import, and most commands score nothing.
    from sacrebleu.metrics import BLEU

    try:
        return BLEU(
            tokenize=tokenizer,
            lowercase=lowercase,
            effective_order=effective_order,
            references=references,
        )
    except (ImportError, RuntimeError) as error:
        extra = _PACKAGES[tokenizer][1] if tokenizer in _PACKAGES else None
        advice = str(error) if extra is None else f'`pip install "sacrebleu[{extra}]"`'
        raise UserError(
            f"received bleu_tokenizer={tokenizer}, which needs a package that is not "
            f"installed: {advice}."
        ) from error
    except OSError as error:
        raise UserError(
            f"received bleu_tokenizer={tokenizer}, whose file sacreBLEU cannot get: "
            f"{error}. Check the network, or choose another tokenizer."
        ) from error


@functools.cache
def sentence_metric(tokenizer: str) -> BLEU:
    """Return BLEU of single sentences, which leaves out n-grams longer than they are.

    Raises:
        UserError: See `bleu_metric`.
    """
    return bleu_metric(tokenizer, effective_order=True)


def check_usable(tokenizer: str) -> None:
    """Refuse a tokenizer that needs a package or a file that is not there.

    Raises:
        UserError: If it is not there. "auto" never needs one.
    """
    if tokenizer != AUTO_TOKENIZER:
        bleu_metric(tokenizer)


def chosen_tokenizer(
    tokenizer: str, texts: Sequence[str], language: str | None = None
) -> str:
    """Return a tokenizer, or for "auto" the one that fits the texts.

    Args:
        tokenizer: One of `constants.BLEU_TOKENIZERS`.
        texts: Texts in the target language, which decide if the language does not.
        language: Code of the target language, such as "zh" or "zh_Hans".
    """
    if tokenizer != AUTO_TOKENIZER:
        return tokenizer
    code = re.split("[-_]", (language or "").lower())[0]
    best, without_package = _LANGUAGES.get(code) or _by_script(texts)
    return best if _is_installed(best) else without_package


def announced_tokenizer(
    tokenizer: str, texts: Sequence[str], language: str | None = None
) -> str:
    """Return `chosen_tokenizer`, and log a choice other than sacreBLEU's default."""
    chosen = chosen_tokenizer(tokenizer, texts, language)
    if tokenizer == AUTO_TOKENIZER and chosen != DEFAULT_TOKENIZER:
        logger.info(
            "BLEU uses sacreBLEU's tokenizer %s, which fits the target text; "
            "bleu_tokenizer chooses another",
            chosen,
        )
    return chosen


def _is_installed(tokenizer: str) -> bool:
    if tokenizer not in _PACKAGES:
        return True
    return importlib.util.find_spec(_PACKAGES[tokenizer][0]) is not None


def _by_script(texts: Sequence[str]) -> tuple[str, str]:
    """Return the tokenizers of a script that the texts write without spaces."""
    spaced = DEFAULT_TOKENIZER, DEFAULT_TOKENIZER
    words = [word for text in texts[:_SAMPLE] for word in text.split()]
    if not words:
        return spaced
    joined = "".join(words)
    mean, half = len(joined) / len(words), sum(map(str.isalnum, joined)) / 2
    chinese = len(_HAN_OR_KANA.findall(joined))
    if chinese > half:
        japanese = 10 * len(_KANA.findall(joined)) > chinese
        limit, found = _LONGEST_CHINESE, _JAPANESE if japanese else _CHINESE
    elif len(_SOUTH_EAST_ASIAN.findall(joined)) > half:
        limit, found = _LONGEST_SOUTH_EAST_ASIAN, _CHARACTERS
    else:
        limit, found = _LONGEST_OTHER, _CHARACTERS
        if len(words) < _FEWEST_WORDS:  # one long word says nothing
            return spaced
    return found if mean > limit else spaced


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
        signature: Signature of sacreBLEU, which names case, tokenizer, smoothing
            and version.
    """

    value: float
    signature: str


@dataclasses.dataclass(frozen=True)
class TranslationScores(Scores):
    """Scores of translations against their references.

    Attributes:
        bleu: Cased BLEU; its signature names the tokenizer.
        bleu_lowercase: BLEU of lower-cased text.
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
        hypotheses: Untokenized translations.
        references: One untokenized reference per translation.
        tokenizer: Tokenizer of BLEU, one of `constants.BLEU_TOKENIZERS`.
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
    from sacrebleu.metrics import CHRF

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
