"""Random trees, with unary chains, repeated labels and punctuation."""

from __future__ import annotations

import random

from t2t_repro.text.trees import Leaf, Tree, TreeBuilder

LABELS = ("S", "NP", "VP", "PP", "ADVP", "PRT", "NP")
TAGS = ("NN", "VB", "IN", ",", ".", "``", "''", ":", "DT", "NN", "NN")


def random_leaves(generator: random.Random) -> list[Leaf]:
    """Draw 1 to 12 leaves."""
    count = generator.randint(1, 12)
    return [Leaf(generator.choice(TAGS), f"w{index}") for index in range(count)]


def random_tree(generator: random.Random, leaves: list[Leaf] | None = None) -> Tree:
    """Draw a tree, over given leaves or over drawn ones."""
    builder = TreeBuilder()
    for leaf in leaves or random_leaves(generator):
        while builder.depth < 6 and generator.random() < 0.4:
            builder.open(generator.choice(LABELS))
        builder.add(leaf)
        while builder.depth and generator.random() < 0.4:
            builder.close()
    while builder.depth:
        builder.close()
    return builder.build()
