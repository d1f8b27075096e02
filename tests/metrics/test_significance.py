from __future__ import annotations

import random

import pytest
import sacrebleu

from t2t_repro.errors import UserError
from t2t_repro.metrics.significance import TESTS, compare_translations

REFERENCES = [f"the {a} and the {b} are here ." for a in "abcdefgh" for b in "stuvwxyz"]


def spoilt(share, seed):
    """Return the references with a share of them spoilt."""
    generator = random.Random(seed)
    return [
        "they are gone ." if generator.random() < share else line for line in REFERENCES
    ]


def compared(test, **systems):
    found = compare_translations(systems, REFERENCES, test, samples=200)
    return {(c.metric, c.system): c for c in found}


@pytest.mark.parametrize("test", TESTS)
def test_only_a_clear_difference_is_significant(test):
    same = spoilt(0.5, 1)
    found = compared(test, base=same, same=list(same), better=spoilt(0.1, 2))
    for metric in ("BLEU", "chrF2"):
        assert found[metric, "better"].p_value < 0.05
        assert found[metric, "same"].p_value > 0.9
        assert found[metric, "base"].p_value is None


def test_scores_equal_sacrebleu_and_the_signature_names_the_test():
    found = compared("bootstrap", base=spoilt(0.5, 1), better=spoilt(0.1, 2))
    expected = sacrebleu.corpus_bleu(spoilt(0.1, 2), [REFERENCES]).score
    assert found["BLEU", "better"].score == pytest.approx(expected)
    assert found["BLEU", "better"].confidence > 0
    assert "bs:200" in found["BLEU", "better"].signature


@pytest.mark.parametrize(
    ("systems", "references", "message"),
    [
        ({"a": ["x"]}, ["x"], "received 1 system"),
        ({"a": ["x"], "b": ["x", "y"]}, ["x"], "received 2 translations in b and 1"),
        ({"a": [], "b": []}, [], "0 references"),
    ],
)
def test_incomparable_systems_are_refused(systems, references, message):
    with pytest.raises(UserError, match=message):
        compare_translations(systems, references)
