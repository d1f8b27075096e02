"""The tree that several weighted trees of a sentence agree on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from t2t_repro.text.trees import Constituent, Tree

Span = tuple[int, int]
# A constituent, and its number among equal ones, from the outermost.
_Bracket = tuple[str, int, int, int]


def consensus_tree(trees: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """Return the tree of all constituents that have more than half of the weight.

    Any two of them are in one of the trees together, so they are never in each other's
    way. Of all trees over the words, this one has the highest expected difference of
    correct and wrong constituents (Goodman 1996, "Parsing algorithms and metrics",
    maximizes the expected number of correct ones). Spans count with their punctuation,
    which EVALB's rules leave out.

    Args:
        trees: Trees over the same words; the first one gives the parts of speech.
        weights: Weight of each tree, not negative.
    """
    total = sum(weights)
    mass: defaultdict[_Bracket, float] = defaultdict(float)
    places: defaultdict[_Bracket, float] = defaultdict(float)
    for tree, weight in zip(trees, weights, strict=True):
        for bracket, place in _numbered(tree):
            mass[bracket] += weight
            places[bracket] += weight * place
    kept = [bracket for bracket in mass if mass[bracket] > total / 2]
    # Preorder; the mean place orders constituents of the same span.
    kept.sort(key=lambda x: (x[1], -x[2], places[x] / mass[x]))
    found = tuple(Constituent(label, start, end) for label, start, end, _ in kept)
    return Tree(trees[0].leaves, found)


def _numbered(tree: Tree) -> list[tuple[_Bracket, int]]:
    """Return the constituents in preorder, each with its place in its span's chain."""
    seen: Counter[Constituent] = Counter()
    chains: Counter[Span] = Counter()
    numbered = []
    for constituent in tree.constituents:
        label, span = constituent.label, (constituent.start, constituent.end)
        numbered.append(((label, *span, seen[constituent]), chains[span]))
        seen[constituent] += 1
        chains[span] += 1
    return numbered
