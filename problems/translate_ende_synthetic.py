"""The embedded translation problem: English to German, drawn from a grammar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from t2t_repro.data.problem import Problem, Vocabulary
from t2t_repro.registry import register_problem

# The demonstration sees each training pair once.
PAIRS = {"train": 150_000, "dev": 500, "test": 500}


@register_problem
class TranslateEndeSynthetic(Problem):
    """English to German from an embedded grammar; needs no download.

    Word order, agreement, separable verbs, compounds and pronouns make the German
    depend on distant words; each English sentence has exactly one translation.
    """

    source_language = "en"
    target_language = "de"
    version = 2  # 1 had 200,000 training pairs
    vocabulary = Vocabulary(kind="subwords", size=3_000, model_type="bpe", shared=True)

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        # Listing the problems must not wait for the lexicon.
        from t2t_repro.features.synthetic.synthetic_corpus import sentences

        del tmp_dir
        for sentence in sentences(split, PAIRS[split]):
            yield sentence.english, sentence.german
