"""Scores of all sentences together, each with what it can be compared with.

Only scores of one kind can be compared, so each names the published numbers of its
kind. docs/scores.md shows how far the kinds are apart.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import re
from collections.abc import Callable, Sequence
from functools import partial

from sacrebleu.metrics import BLEU, CHRF, TER

from t2t_repro.errors import UserError
from t2t_repro.translation_scores import DEFAULT_TOKENIZER, Score, bleu_metric


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


PACKAGE = "sacremoses"
INSTALL = "pip install sacremoses"

# Perl applies the script's expression to bytes, and finds hyphens from left to right
# without overlap: a-b-c is split once if b is one byte.
_HYPHEN = re.compile(rb"(\S)-(\S)")
_SPLIT_HYPHEN = rb"\1 ##AT##-##AT## \2"
# Languages without a list of abbreviations of their own, which sacremoses knows.
_CJK = frozenset(("zh", "ja", "ko", "cjk"))


def is_available() -> bool:
    """Return whether sacremoses is installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def known_languages() -> set[str]:
    """Return the codes of the languages that sacremoses knows; it must be installed."""
    corpus = importlib.import_module(f"{PACKAGE}.corpus")
    return {*corpus.NonbreakingPrefixes().available_langs.values(), *_CJK}


class MosesTokenizer:
    """Moses's `replace-unicode-punctuation.perl`, then its `tokenizer.perl`.

    Args:
        language: Code of the language, such as "de".

    Raises:
        UserError: If sacremoses is not installed or does not know the language.
    """

    def __init__(self, language: str) -> None:
        if not is_available():
            raise UserError(
                f"Moses tokenisation needs the package {PACKAGE}: `{INSTALL}`."
            )
        sacremoses = importlib.import_module(PACKAGE)
        known = known_languages()
        if language not in known:
            raise UserError(
                f"received language {language!r}, expected one that Moses knows: "
                f"{', '.join(sorted(known))}"
            )
        self.language = language
        self.version = str(sacremoses.__version__)
        self._tokenizer = sacremoses.MosesTokenizer(lang=language)
        self._normalizer = sacremoses.MosesPunctNormalizer(lang=language)

    def tokenize(self, text: str) -> str:
        """Return the tokens of a text with spaces between them."""
        replaced = self._normalizer.replace_unicode_punct(text)
        return str(self._tokenizer.tokenize(replaced, return_str=True))


def split_compounds(tokens: str) -> str:
    """Split words at hyphens: "rot-grün" becomes "rot ##AT##-##AT## grün"."""
    split = _HYPHEN.sub(_SPLIT_HYPHEN, tokens.encode("utf-8", "surrogatepass"))
    return split.decode("utf-8", "surrogatepass")


def tokenized_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenizer: MosesTokenizer,
    *,
    compounds_split: bool,
) -> Score:
    """Return cased BLEU as `multi-bleu.perl` computes it on Moses's tokens.

    Differs from `get_ende_bleu.sh`: both sides are tokenised in the same way. The
    script tokenises only the output, because its reference is one file that is
    tokenised already.

    Args:
        hypotheses: Untokenised translations.
        references: One untokenised reference per translation.
        tokenizer: Tokenizer of the target language.
        compounds_split: Whether to split both sides at hyphens.
    """

    def tokens(texts: Sequence[str]) -> list[str]:
        tokenized = (tokenizer.tokenize(text) for text in texts)
        return [split_compounds(t) if compounds_split else t for t in tokenized]

    # multi-bleu.perl does not smooth; `force` silences a warning about tokenised text.
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    score = metric.corpus_score(tokens(hypotheses), [tokens(references)])
    name = f"moses-{tokenizer.language}" + ("-atat" if compounds_split else "")
    signature = str(metric.get_signature()).replace("tok:none", f"tok:{name}")
    return Score(score.score, f"{signature}|{PACKAGE}:{tokenizer.version}")
