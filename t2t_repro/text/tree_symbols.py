"""Trees as the symbols that a parser writes, and a tree of whatever it has written.

The form is that of Vinyals et al. 2015, "Grammar as a Foreign Language":
`(S (NP XX )NP (VP XX )VP )S` for (S (NP (NNP John)) (VP (VBZ runs))), the words left
out. Differs from tensor2tensor (`wsj_parsing.py: words_and_tags_from_wsj_tree`), which
writes `S NP NNP /NP VP VBZ /VP /S`: here a bracket and a part of speech cannot be
mistaken for each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from t2t_repro.text.symbols import SPECIAL_SYMBOLS
from t2t_repro.text.trees import ANY_TAG, Leaf, Tree, TreeBuilder, walk

# What may be wrong with the symbols that a model writes.
TOO_MANY_WORDS = "more leaves than words"
TOO_FEW_WORDS = "fewer leaves than words"
UNOPENED = "closes what was not opened"
UNCLOSED = "does not close what was opened"
OTHER_LABEL = "closes with another label"
EMPTY = "constituent without a word"
NO_SYMBOL = "no symbol of a tree"


@dataclasses.dataclass(frozen=True)
class RepairedTree:
    """A tree over given words.

    Attributes:
        tree: it has exactly these words as its leaves.
        repairs: what was wrong with the symbols, each thing once.
    """

    tree: Tree
    repairs: tuple[str, ...]


def to_symbols(tree: Tree, *, keep_tags: bool = False) -> list[str]:
    """Gives the symbols of a tree.

    Args:
        tree: the tree.
        keep_tags: whether a leaf is written as its part of speech, or as `XX`.
    """
    symbols = []
    for piece in walk(tree):
        if isinstance(piece, Leaf):
            symbols.append(piece.tag if keep_tags else ANY_TAG)
        else:
            symbols.append(f"{'(' if piece.opens else ')'}{piece.label}")
    return symbols


def from_symbols(symbols: Sequence[str], words: Sequence[str]) -> RepairedTree:
    """Makes a tree over the words, whatever the symbols are.

    The k-th leaf takes the k-th word. Leaves without a word are dropped; words without
    a leaf hang on the root. A bracket that closes another label closes the innermost
    constituent; one that closes nothing gets its opening bracket at the beginning, as
    in Vinyals et al. 2015, and open ones are closed behind the last leaf.
    Constituents without a word vanish.
    """
    repair = _Repair(words)
    for symbol in symbols:
        repair.take(symbol)
    return repair.finish()


class _Repair:
    """Symbols read so far, and what was wrong with them."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._builder = TreeBuilder()
        self._faults: dict[str, None] = {}

    def take(self, symbol: str) -> None:
        if len(symbol) > 1 and symbol[0] == "(":
            self._builder.open(symbol[1:])
        elif len(symbol) > 1 and symbol[0] == ")":
            self._close(symbol[1:])
        elif symbol in ("(", ")", *SPECIAL_SYMBOLS):
            self._note(NO_SYMBOL)
        else:
            self._add(symbol)

    def finish(self) -> RepairedTree:
        if self._builder.depth:
            self._note(UNCLOSED)
        while self._builder.depth:
            self._close_innermost()
        left = self._words[len(self._builder.leaves) :]
        if left:
            self._note(TOO_FEW_WORDS)
        for word in left:
            self._builder.add(Leaf(ANY_TAG, word))
        return RepairedTree(self._builder.build(), tuple(self._faults))

    def _note(self, fault: str) -> None:
        self._faults[fault] = None

    def _add(self, tag: str) -> None:
        place = len(self._builder.leaves)
        if place == len(self._words):
            self._note(TOO_MANY_WORDS)
        else:
            self._builder.add(Leaf(tag, self._words[place]))

    def _close(self, label: str) -> None:
        if not self._builder.depth:
            self._note(UNOPENED)
            self._builder.enclose(label)
        elif self._close_innermost() != label:
            self._note(OTHER_LABEL)

    def _close_innermost(self) -> str:
        label, has_leaf = self._builder.close()
        if not has_leaf:
            self._note(EMPTY)
        return label
