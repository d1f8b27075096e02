"""Translation: WMT 2014, another public data set, and the user's own text."""

from __future__ import annotations

from t2t_repro.data.file_problem import TextPairProblem
from t2t_repro.data.problem import Vocabulary
from t2t_repro.data.tfds_problems import TfdsTranslationProblem, TranslateWmt14
from t2t_repro.registry import register_problem


@register_problem("translate_ende_wmt14")
class TranslateEndeWmt14(TranslateWmt14):
    """WMT 2014 English to German, 4.5 million pairs, 37,000 shared subwords."""

    vocabulary = Vocabulary(size=37_000)
    data_set = "wmt14_translate/de-en"
    target_language = "de"


@register_problem("translate_enfr_wmt14")
class TranslateEnfrWmt14(TranslateWmt14):
    """WMT 2014 English to French, 36 million pairs, 32,000 shared subwords."""

    vocabulary = Vocabulary(size=32_000)
    data_set = "wmt14_translate/fr-en"
    target_language = "fr"


@register_problem
class TranslateTfds(TfdsTranslationProblem):
    """A translation data set of tensorflow-datasets, named by --tfds."""


@register_problem
class TextPairs(TextPairProblem):
    """Your own text: two files per split, line by line, or one TSV."""
