"""Random trees, with unary chains, repeated labels and punctuation."""

from __future__ import annotations

import random
from collections.abc import Sequence

from t2t_repro.features.parsing.trees import Constituent, Leaf, Tree, TreeBuilder

LABELS = ("S", "NP", "VP", "PP", "ADVP", "PRT", "NP")
TAGS = ("NN", "VB", "IN", ",", ".", "``", "''", ":", "DT", "NN", "NN")
DEEPEST = 6


def random_leaves(generator: random.Random, most: int = 12) -> list[Leaf]:
    """Draw 1 to `most` leaves, at least one of which is not punctuation."""
    count = generator.randint(1, most)
    tags = generator.choices(TAGS, k=count)
    tags[generator.randrange(count)] = "NN"
    return [Leaf(tag, f"w{index}") for index, tag in enumerate(tags)]


def random_tree(generator: random.Random, leaves: Sequence[Leaf] | None = None) -> Tree:
    """Draw a tree, over the given leaves or random ones."""
    builder = TreeBuilder()
    for leaf in leaves or random_leaves(generator):
        while builder.depth < DEEPEST and generator.random() < 0.4:
            builder.open(generator.choice(LABELS))
        builder.add(leaf)
        while builder.depth and generator.random() < 0.4:
            builder.close()
    while builder.depth:
        builder.close()
    return builder.build()


def altered_tree(generator: random.Random, tree: Tree) -> Tree:
    kept = [c for c in tree.constituents if generator.random() < 0.9]
    renamed = [
        Constituent(generator.choice(LABELS), c.start, c.end)
        if generator.random() < 0.1
        else c
        for c in kept
    ]
    return Tree(tree.leaves, tuple(renamed))
