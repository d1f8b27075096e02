"""Constituency parsing of the embedded grammar's English."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from t2t_repro.data.problem import Vocabulary
from t2t_repro.features.parsing.tree_problem import (
    ParsingProblem,
    read_tree,
    sentence_and_tree,
)
from t2t_repro.registry import register_problem

PAIRS = {"train": 30_000, "dev": 500, "test": 500}


@register_problem
class ParsingSynthetic(ParsingProblem):
    """Trees of the embedded grammar's English, with initials; needs no download."""

    vocabulary = Vocabulary(kind="subwords_to_symbols", size=3_000, shared=False)
    leaves = "initial"

    def pairs(
        self, split: str, tmp_dir: str | Path | None
    ) -> Iterator[tuple[str, str]]:
        # Listing the problems must not wait for the lexicon.
        from t2t_repro.features.synthetic.synthetic_corpus import sentences

        del tmp_dir
        for sentence in sentences(split, PAIRS[split]):
            yield sentence_and_tree(read_tree(sentence.tree))
