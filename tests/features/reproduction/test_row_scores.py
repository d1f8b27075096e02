from __future__ import annotations

from pathlib import Path

import pytest

from t2t_repro.data.prepared import PreparedData
from t2t_repro.features.parsing.bracketing import score_trees
from t2t_repro.features.parsing.tree_problem import read_tree
from t2t_repro.features.reproduction.row_scores import dev_likelihood, f1_by_length
from t2t_repro.runs import System


def tree(words, label="NP"):
    """Return a tree over a number of words, with one bracket around the first."""
    others = " ".join(f"(NN w{index})" for index in range(words - 1))
    return f"(S ({label} (NN w)) {others})"


SIZES = [9, 10, 11, 20, 21, 40, 41]
REFERENCES = [tree(words) for words in SIZES]
# One bracket of two is wrong in every second tree.
HYPOTHESES = [tree(words, ("NP", "VP")[i % 2]) for i, words in enumerate(SIZES)]


def test_each_class_has_the_f1_of_its_sentences():
    """A sentence of 10 words belongs to the first class, of 11 to the second."""
    classes = {
        "1 to 10 words": [0, 1],
        "11 to 20 words": [2, 3],
        "21 to 30 words": [4],
        "31 to 40 words": [5],
        "over 40 words": [6],
    }
    found = f1_by_length(HYPOTHESES, REFERENCES)
    assert list(found) == list(classes)
    for name, indices in classes.items():
        expected = score_trees(
            [read_tree(HYPOTHESES[i]) for i in indices],
            [read_tree(REFERENCES[i]) for i in indices],
        )
        assert found[name] == pytest.approx(expected.f1)
    assert found["1 to 10 words"] == pytest.approx(75)
    assert found["31 to 40 words"] == pytest.approx(50)


def test_a_class_without_sentences_has_no_score():
    assert list(f1_by_length([tree(3)], [tree(3)])) == ["1 to 10 words"]


@pytest.mark.usefixtures("eager")
def test_the_nll_that_ranks_systems_is_that_of_the_evaluations_in_training(trained):
    system = System.load(trained.output_dir, "latest")
    data = PreparedData.load(trained.data_dir, system.problem)
    last = trained.metrics("eval")[-1]
    assert last["step"] == trained.steps
    assert dev_likelihood(system, data) == {
        name: pytest.approx(last[name], rel=1e-4) for name in ("nll", "perplexity")
    }
    # The evaluation leaves no files beside the checkpoint.
    assert not Path(system.checkpoint).exists()
