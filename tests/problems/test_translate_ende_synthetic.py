from __future__ import annotations

import itertools

import pytest

from t2t_repro import catalogue
from t2t_repro.features.synthetic.synthetic_corpus import sentences


def test_the_pairs_are_the_text_of_the_sentences():
    problem = catalogue.problem("translate_ende_synthetic")
    pairs = list(itertools.islice(problem.pairs("test", None), 10))
    assert pairs == [(s.english, s.german) for s in sentences("test", 10)]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_held_out_splits_have_500_pairs(split):
    problem = catalogue.problem("translate_ende_synthetic")
    assert sum(1 for _ in problem.pairs(split, None)) == 500
