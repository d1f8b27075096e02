"""The papers' tokenised BLEU: Moses tokens, compounds split at hyphens, multi-bleu.

tensor2tensor: `utils/get_ende_bleu.sh`, which calls Moses's Perl scripts. Here
`sacremoses`, a port of these scripts, replaces them. It is an optional dependency.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Sequence

from sacrebleu.metrics import BLEU

from t2t_repro.errors import UserError
from t2t_repro.translation_scores import Score

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
