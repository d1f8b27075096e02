"""Bracketing F1 by the length of the sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2t_repro.features.parsing.bracketing import score_trees
from t2t_repro.features.parsing.tree_problem import read_tree

# Largest number of words of each class but the last, punctuation included.
LENGTHS = (10, 20, 30, 40)


def f1_by_length(
    hypotheses: Sequence[str], references: Sequence[str]
) -> dict[str, float]:
    """Return the F1 of the sentences of each class of lengths that has any.

    Args:
        hypotheses: Trees in the Penn Treebank's format, over the references' words.
        references: The true trees.

    Returns:
        F1 by the name of the class, such as "11 to 20 words", shortest first.
    """
    pairs = [
        (read_tree(hypothesis), read_tree(reference))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    scores = {}
    for low, high in zip((0, *LENGTHS), (*LENGTHS, None), strict=True):
        own = [
            (hypothesis, reference)
            for hypothesis, reference in pairs
            if low < len(reference.leaves)
            and (not high or len(reference.leaves) <= high)
        ]
        if own:
            scores[_class_name(low, high)] = score_trees(*zip(*own, strict=True)).f1
    return scores


def score_name(class_name: str, split: str) -> str:
    """Return the name of a class's score in a result file."""
    return f"F1, {class_name} ({split})"


def classes_in(scores: Mapping[str, float], split: str) -> dict[str, float]:
    """Return the F1 of each class in the scores of a result file, shortest first."""
    ends = list(zip((0, *LENGTHS), (*LENGTHS, None), strict=True))
    names = [_class_name(low, high) for low, high in ends]
    return {
        name: scores[score_name(name, split)]
        for name in names
        if score_name(name, split) in scores
    }


def _class_name(low: int, high: int | None) -> str:
    return f"over {low} words" if high is None else f"{low + 1} to {high} words"
