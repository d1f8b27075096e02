from __future__ import annotations

import pytest

from results.silver import silver_trees, write_semi_supervised
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.errors import UserError
from t2t_repro.settings.decode_hparams import DecodeHParams

# Sentence -> score of its tree, number of symbols, repairs. With alpha 0, the score is
# the sum of the symbols' log-probabilities.
PARSES = {
    "a": (-2.0, 2, ()),  # -1 per symbol
    "b b": (-3.0, 6, ()),  # -0.5
    "c": (-0.1, 2, ("missing leaf",)),
    "d d d": (-3.2, 8, ()),  # -0.4
    "e": (-1.4, 2, ()),  # -0.7
    "f f f f f f f f f": (-0.1, 9, ()),  # parsed in pieces
}


class FakeParser:
    """Parse known sentences; a piece has at most seven words."""

    def __init__(self):
        self.hparams = []

    def with_problem_defaults(self, hparams):
        self.hparams.append(hparams)
        return DecodeHParams(alpha=0.0)

    def hypotheses(self, sentences, hparams):
        self.hparams.append(hparams)
        for sentence in sentences:
            score, length, repairs = PARSES[sentence]
            pieces = 1 + len(sentence.split()) // 8
            text = f"(TOP {sentence})"
            best = Hypothesis(text, score, repairs, (1,) * length, pieces)
            yield [best, Hypothesis("(TOP other)", -0.001, (), (1,))]


@pytest.mark.parametrize(
    ("share", "kept"),
    [
        (0.5, ["b b", "d d d", "e"]),
        (0.3, ["d d d"]),  # of six sentences, 1.8
        (1.0, ["a", "b b", "d d d", "e"]),
    ],
)
def test_the_most_probable_whole_trees_are_kept_in_order(share, kept):
    found = silver_trees(FakeParser(), [*PARSES], share)
    assert found == [f"(TOP {sentence})" for sentence in kept]


def test_the_search_has_the_given_settings():
    parser, given = FakeParser(), DecodeHParams(beam_size=3)
    silver_trees(parser, ["a"], decode_hparams=given)
    assert parser.hparams == [given, DecodeHParams(alpha=0.0)]


def test_gold_trees_are_copied_and_only_the_words_of_the_others_are_read(tmp_path):
    gold, raw, path = (tmp_path / name for name in ("gold", "raw", "both"))
    gold.write_text("( (S (NP (NN gold))) )\n")
    raw.write_text("((S (NP (NN b))\n  (VP (VB b))))\n((S (NN e)))\n((X (-NONE- *)))\n")
    assert write_semi_supervised(FakeParser(), gold, raw, path, share=0.5) == 1
    assert path.read_text() == "( (S (NP (NN gold))) )\n(TOP b b)\n"
    raw.write_text("(S")
    with pytest.raises(UserError, match="expected the Penn Treebank's brackets"):
        write_semi_supervised(FakeParser(), gold, raw, path)
    assert path.read_text().endswith("(TOP b b)\n")
