"""Scores of all sentences together, and the published numbers to compare them with.

Only scores of one kind can be compared, so each names the published numbers of its
kind. docs/scores.md shows how far the kinds are apart.

The papers' tokenized BLEU is of Moses's tokens, with compounds split at hyphens, by
multi-bleu. tensor2tensor: `utils/get_ende_bleu.sh`, which calls Moses's Perl scripts.
Here `sacremoses`, a port of these scripts, replaces them. It is an optional dependency.
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

PACKAGE = "sacremoses"
INSTALL = "pip install sacremoses"
# Perl applies the script's expression to bytes, and finds hyphens from left to right
# without overlap: a-b-c is split once if b is one byte.
_HYPHEN = re.compile(rb"(\S)-(\S)")
_SPLIT_HYPHEN = rb"\1 ##AT##-##AT## \2"
# Languages that sacremoses knows, but has no list of abbreviations for.
_CJK = frozenset(("zh", "ja", "ko", "cjk"))


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


# Name, label, metric and meaning of each kind.
_Kind = tuple[str, str, Callable[[], BLEU | CHRF | TER], str]
_PUBLISHED = (DEFAULT_TOKENIZER, "intl")
_SACREBLEU: tuple[_Kind, ...] = (
    (
        *("bleu_13a", "BLEU 13a", BLEU),
        "sacreBLEU's default, to publish today; not the papers' number.",
    ),
    (
        *("bleu_13a_lc", "BLEU 13a, lower-cased", partial(BLEU, lowercase=True)),
        "As in NVIDIA's DeepLearningExamples: big 27.92 on eight A100 (TF32).",
    ),
    (
        *("bleu_intl", "BLEU intl", partial(BLEU, tokenize="intl")),
        "`t2t-bleu`, cased.",
    ),
    (
        *("bleu_intl_lc", "BLEU intl, lower-cased"),
        partial(BLEU, tokenize="intl", lowercase=True),
        "`t2t-bleu`, uncased.",
    ),
)
_CHARACTERS_AND_EDITS: tuple[_Kind, ...] = (
    (
        *("chrf", "chrF2", CHRF),
        "Character n-grams (Popovic 2015); not in the papers.",
    ),
    (
        *("chrf_plus_plus", "chrF2++", partial(CHRF, word_order=2)),
        "chrF2 with words and pairs of words (Popovic 2017); not in the papers.",
    ),
    (
        *("ter", "TER", TER),
        "Edits per 100 reference words, lower is better (Snover et al. 2006); not "
        "in the papers.",
    ),
)
# Name, label, whether compounds are split, and meaning.
_MOSES = (
    (
        *("bleu_tokenized", "BLEU tokenised", False),
        "multi-bleu without the split of compounds; the usual kind of papers on "
        "English-French (Vaswani et al., Table 2: base 38.1, big 41.8).",
    ),
    (
        *("bleu_paper", "BLEU of the papers", True),
        "Tokenised, compounds split (`get_ende_bleu.sh`): Vaswani et al., Table 2, "
        "English-German: base 27.3, big 28.4.",
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
        hypotheses: Untokenized translations, at least one.
        references: One untokenized reference per translation.
        language: Code of the target language, for Moses's tokenizer, if it is known.
        tokenizer: sacreBLEU's tokenizer. If it is not one of the published kinds, its
            BLEU replaces theirs, which would take a sentence without spaces for a word.
    """

    def score(kind: _Kind) -> NamedScore:
        name, label, make, meaning = kind
        metric = make()
        value = metric.corpus_score(list(hypotheses), [list(references)]).score
        signature = str(metric.get_signature())
        return NamedScore(name, label, float(value), signature, meaning)

    if tokenizer in _PUBLISHED:
        kinds = [
            *map(score, _SACREBLEU),
            *_tokenized_scores(hypotheses, references, language),
        ]
    else:
        kinds = [*map(score, _own_kinds(tokenizer))]
    return (*kinds, *map(score, _CHARACTERS_AND_EDITS))


def _own_kinds(tokenizer: str) -> list[_Kind]:
    """Return the cased and the lower-cased BLEU of a tokenizer."""
    name, label = f"bleu_{tokenizer.replace('-', '_')}", f"BLEU {tokenizer}"
    lowercase = partial(bleu_metric, tokenizer, lowercase=True)
    meaning = "To publish, with its signature; not in the papers."
    return [
        (name, label, partial(bleu_metric, tokenizer), meaning),
        (f"{name}_lc", f"{label}, lower-cased", lowercase, meaning),
    ]


def _tokenized_scores(
    hypotheses: Sequence[str], references: Sequence[str], language: str | None
) -> list[NamedScore]:
    """Return the scores on Moses's tokens, or why they cannot be computed."""
    missing, tokenizer = None, None
    if not is_available():
        missing = f"not computed: {PACKAGE} is not installed (`{INSTALL}`)"
    elif language is None:
        missing = "not computed: the target language is not known; give card_language"
    elif language not in known_languages():
        missing = (
            f"not computed: Moses's tokenizer does not know the language {language}"
        )
    else:
        tokenizer = MosesTokenizer(language)
    found = []
    for name, label, split, meaning in _MOSES:
        value = signature = None
        if tokenizer is not None:
            score = tokenized_bleu(
                hypotheses, references, tokenizer, compounds_split=split
            )
            value, signature = score.value, score.signature
        found.append(NamedScore(name, label, value, signature, meaning, missing))
    return found


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
        UserError: If sacremoses does not know the language.
    """

    def __init__(self, language: str) -> None:
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

    Differs from `get_ende_bleu.sh`: both sides are tokenized in the same way. The
    script tokenizes only the output, because its reference is one file that is
    tokenized already.

    Args:
        hypotheses: Untokenized translations.
        references: One untokenized reference per translation.
        tokenizer: Tokenizer of the target language.
        compounds_split: Whether to split both sides at hyphens.
    """

    def tokens(texts: Sequence[str]) -> list[str]:
        tokenized = (tokenizer.tokenize(text) for text in texts)
        return [split_compounds(t) if compounds_split else t for t in tokenized]

    # multi-bleu.perl does not smooth; `force` silences a warning about tokenized text.
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    score = metric.corpus_score(tokens(hypotheses), [tokens(references)])
    name = f"moses-{tokenizer.language}" + ("-atat" if compounds_split else "")
    signature = str(metric.get_signature()).replace("tok:none", f"tok:{name}")
    return Score(score.score, f"{signature}|{PACKAGE}:{tokenizer.version}")
