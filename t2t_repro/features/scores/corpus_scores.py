"""Scores of all sentences together, each with what it can be compared with.

Only scores of one kind can be compared, so each names the published numbers of its
kind. docs/scores.md shows how far the kinds are apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial

from sacrebleu.metrics import BLEU, CHRF, TER

from t2t_repro.features.scores.moses import (
    INSTALL,
    PACKAGE,
    MosesTokenizer,
    is_available,
    known_languages,
    tokenized_bleu,
)
from t2t_repro.translation_scores import DEFAULT_TOKENIZER, bleu_metric


@dataclasses.dataclass(frozen=True)
class NamedScore:
    """A score of all sentences, or the reason why it is missing.

    Attributes:
        name: Name in JSON.
        label: Name for people.
        value: The score; 0 to 100, or more for TER. None if it is missing.
        signature: Signature of sacreBLEU, extended for Moses's tokens. None if the
            score is missing.
        meaning: The published numbers of this kind.
        missing: The reason why the score is missing, and what to do; else None.
    """

    name: str
    label: str
    value: float | None
    signature: str | None
    meaning: str
    missing: str | None = None


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A kind of score, without its value."""

    name: str
    label: str
    meaning: str


_PUBLISHED = (DEFAULT_TOKENIZER, "intl")
_Metric = BLEU | CHRF | TER
_SACREBLEU: tuple[tuple[_Kind, Callable[[], _Metric]], ...] = (
    (
        _Kind(
            "bleu_13a",
            "BLEU 13a",
            "sacreBLEU's default, to publish today; not the papers' number.",
        ),
        BLEU,
    ),
    (
        _Kind(
            "bleu_13a_lc",
            "BLEU 13a, lower-cased",
            "As in NVIDIA's DeepLearningExamples: big 27.92 on eight A100 (TF32).",
        ),
        partial(BLEU, lowercase=True),
    ),
    (
        _Kind(
            "bleu_intl",
            "BLEU intl",
            "`t2t-bleu`, cased.",
        ),
        partial(BLEU, tokenize="intl"),
    ),
    (
        _Kind(
            "bleu_intl_lc",
            "BLEU intl, lower-cased",
            "`t2t-bleu`, uncased.",
        ),
        partial(BLEU, tokenize="intl", lowercase=True),
    ),
)
_MOSES = (
    (
        _Kind(
            "bleu_tokenized",
            "BLEU tokenised",
            "multi-bleu without the split of compounds; the usual kind of papers on "
            "English-French (Vaswani et al., Table 2: base 38.1, big 41.8).",
        ),
        False,
    ),
    (
        _Kind(
            "bleu_paper",
            "BLEU of the papers",
            "Tokenised, compounds split (`get_ende_bleu.sh`): Vaswani et al., Table 2, "
            "English-German: base 27.3, big 28.4.",
        ),
        True,
    ),
)
_CHARACTERS_AND_EDITS: tuple[tuple[_Kind, Callable[[], _Metric]], ...] = (
    (
        _Kind("chrf", "chrF2", "Character n-grams (Popovic 2015); not in the papers."),
        CHRF,
    ),
    (
        _Kind(
            "chrf_plus_plus",
            "chrF2++",
            "chrF2 with words and pairs of words (Popovic 2017); not in the papers.",
        ),
        partial(CHRF, word_order=2),
    ),
    (
        _Kind(
            "ter",
            "TER",
            "Edits per 100 reference words, lower is better (Snover et al. 2006); not "
            "in the papers.",
        ),
        TER,
    ),
)


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str | None,
    tokenizer: str = DEFAULT_TOKENIZER,
) -> tuple[NamedScore, ...]:
    """Score translations by all metrics.

    Args:
        hypotheses: Untokenised translations, at least one.
        references: One untokenised reference per translation.
        language: Code of the target language, for Moses's tokenizer, if it is known.
        tokenizer: sacreBLEU's tokenizer. If it is not one of the published kinds, its
            BLEU replaces theirs, which would take a sentence without spaces for a word.
    """
    streams = list(hypotheses), [list(references)]

    def score(kind: _Kind, make: Callable[[], _Metric]) -> NamedScore:
        metric = make()
        value = float(metric.corpus_score(*streams).score)
        signature = str(metric.get_signature())
        return NamedScore(kind.name, kind.label, value, signature, kind.meaning)

    if tokenizer in _PUBLISHED:
        kinds = [score(*row) for row in _SACREBLEU]
        kinds += _tokenized_scores(hypotheses, references, language)
    else:
        kinds = [score(*row) for row in _own_kinds(tokenizer)]
    return (
        *kinds,
        *(score(*row) for row in _CHARACTERS_AND_EDITS),
    )


def _own_kinds(tokenizer: str) -> list[tuple[_Kind, Callable[[], _Metric]]]:
    """Return the cased and the lower-cased BLEU of a tokenizer."""
    name, label = f"bleu_{tokenizer.replace('-', '_')}", f"BLEU {tokenizer}"
    meaning = "To publish, with its signature; not in the papers."
    return [
        (_Kind(name, label, meaning), partial(bleu_metric, tokenizer)),
        (
            _Kind(f"{name}_lc", f"{label}, lower-cased", meaning),
            partial(bleu_metric, tokenizer, lowercase=True),
        ),
    ]


def _missing(language: str | None) -> str | None:
    """Return why the scores on Moses's tokens cannot be computed, or None."""
    if not is_available():
        return f"not computed: {PACKAGE} is not installed (`{INSTALL}`)"
    if language is None:
        return "not computed: the target language is not known; give card_language"
    if language not in known_languages():
        return f"not computed: Moses's tokenizer does not know the language {language}"
    return None


def _tokenized_scores(
    hypotheses: Sequence[str], references: Sequence[str], language: str | None
) -> list[NamedScore]:
    missing = _missing(language)
    if language is None or missing is not None:
        return [
            NamedScore(kind.name, kind.label, None, None, kind.meaning, missing)
            for kind, _ in _MOSES
        ]
    tokenizer, found = MosesTokenizer(language), []
    for kind, compounds_split in _MOSES:
        score = tokenized_bleu(
            hypotheses, references, tokenizer, compounds_split=compounds_split
        )
        found.append(
            NamedScore(
                kind.name, kind.label, score.value, score.signature, kind.meaning
            )
        )
    return found
