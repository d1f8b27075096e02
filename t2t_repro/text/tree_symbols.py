"""Convert trees to the symbols that a parser writes, and back with repairs.

The form is that of Vinyals et al. 2015, "Grammar as a Foreign Language":
`(S (NP XX )NP (VP XX )VP )S` for (S (NP (NNP John)) (VP (VBZ runs))), without the
words. Differs from tensor2tensor (`wsj_parsing.py: words_and_tags_from_wsj_tree`),
which writes `S NP NNP /NP VP VBZ /VP /S`: here no bracket can be mistaken for a part of
speech.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Sequence
from typing import Literal

from t2t_repro.text.alignment import align
from t2t_repro.text.symbols import SPECIAL_SYMBOLS
from t2t_repro.text.trees import ANY_TAG, Leaf, Tree, TreeBuilder, walk

# The form of a leaf: `XX`, `NNP`, or `j/NNP`, which begins with the word's initial.
LeafForm = Literal["any", "tag", "initial"]
_OTHER_INITIAL = "*"

# Faults of the symbols that a model writes.
LEAF_WITHOUT_WORD = "leaf without a word"
WORD_WITHOUT_LEAF = "word without a leaf"
OTHER_WORD = "leaf with another word's initial"
UNOPENED = "closing bracket without an opening one"
UNCLOSED = "opening bracket without a closing one"
OTHER_LABEL = "closing bracket with another label"
EMPTY = "constituent without a word"
NO_SYMBOL = "not a symbol of a tree"


@dataclasses.dataclass(frozen=True)
class RepairedTree:
    """A tree over given words.

    Attributes:
        tree: Tree with exactly these words as its leaves.
        repairs: Faults of the symbols, each once.
    """

    tree: Tree
    repairs: tuple[str, ...]


def to_symbols(tree: Tree, *, leaves: LeafForm = "any") -> list[str]:
    """Return the symbols of a tree.

    Args:
        tree: The tree.
        leaves: The form of its leaves.
    """
    symbols = []
    for piece in walk(tree):
        if isinstance(piece, Leaf):
            symbols.append(_leaf_symbol(piece, leaves))
        else:
            symbols.append(f"{'(' if piece.opens else ')'}{piece.label}")
    return symbols


def _leaf_symbol(leaf: Leaf, form: LeafForm) -> str:
    if form == "any":
        return ANY_TAG
    return leaf.tag if form == "tag" else f"{initial(leaf.word)}/{leaf.tag}"


def _tag(symbol: str, form: LeafForm) -> str:
    """Return the part of speech of a written leaf, or ANY_TAG without one."""
    return (symbol[2:] if form == "initial" else symbol) or ANY_TAG


def initial(word: str) -> str:
    """Return the first character of a word in lower case, with 0 for any digit."""
    first = word[0]
    if first in string.digits:
        return "0"
    return first.lower() if first.isascii() else _OTHER_INITIAL


def from_symbols(
    symbols: Sequence[str], words: Sequence[str], *, leaves: LeafForm = "any"
) -> RepairedTree:
    """Make a tree over the words from any symbols.

    Leaf number k gets word number k; leaves with initials are aligned with the initials
    of the words (`align`). Faults are repaired:

    - A leaf without a word is dropped.
    - A word without a leaf follows the leaf before it; after the last leaf it is a
      child of the root.
    - A bracket that closes another label closes the innermost constituent.
    - A bracket that closes nothing gets its opening bracket at the beginning, as in
      Vinyals et al. 2015.
    - An open bracket is closed after the last leaf.
    - A constituent without a word is dropped.

    Args:
        symbols: The output of a model.
        words: The words of the sentence.
        leaves: The form of the leaves that the model learned to write.
    """
    repair = _Repair(words, leaves, _places(symbols, words, leaves))
    for symbol in symbols:
        repair.take(symbol)
    return repair.finish()


def _places(
    symbols: Sequence[str], words: Sequence[str], leaves: LeafForm
) -> list[int | None]:
    """Return the index of the word of each leaf, or None if the leaf is dropped."""
    written = [symbol for symbol in symbols if is_leaf(symbol)]
    if leaves == "initial":
        return align([symbol[0] for symbol in written], [*map(initial, words)])
    return [k if k < len(words) else None for k in range(len(written))]


def is_leaf(symbol: str) -> bool:
    """Return whether a symbol is a leaf, in any form."""
    return symbol[0] not in "()" and symbol not in SPECIAL_SYMBOLS


class _Repair:
    """The tree of the symbols read so far, and their faults.

    Args:
        words: The words of the sentence.
        leaves: The form of the leaves.
        places: For each leaf the index of its word, ascending, or None to drop it.
    """

    def __init__(
        self, words: Sequence[str], leaves: LeafForm, places: Sequence[int | None]
    ) -> None:
        self._words = words
        self._leaves = leaves
        self._places = list(reversed(places))
        self._builder = TreeBuilder()
        self._faults: dict[str, None] = {}

    def take(self, symbol: str) -> None:
        if is_leaf(symbol):
            self._add(symbol)
        elif len(symbol) == 1 or symbol in SPECIAL_SYMBOLS:
            self._note(NO_SYMBOL)
        elif symbol[0] == "(":
            self._builder.open(symbol[1:])
        else:
            self._close(symbol[1:])

    def finish(self) -> RepairedTree:
        if self._builder.depth:
            self._note(UNCLOSED)
        while self._builder.depth:
            self._close_innermost()
        self._add_words_before(len(self._words))
        return RepairedTree(self._builder.build(), tuple(self._faults))

    def _note(self, fault: str) -> None:
        self._faults[fault] = None

    def _add(self, symbol: str) -> None:
        place = self._places.pop()
        if place is None:
            self._note(LEAF_WITHOUT_WORD)
            return
        self._add_words_before(place)
        word = self._words[place]
        if self._leaves == "initial" and symbol[0] != initial(word):
            self._note(OTHER_WORD)
        self._builder.add(Leaf(_tag(symbol, self._leaves), word))
        following = [place for place in self._places if place is not None]
        if following:
            self._add_words_before(following[-1])

    def _add_words_before(self, end: int) -> None:
        left = self._words[len(self._builder.leaves) : end]
        if left:
            self._note(WORD_WITHOUT_LEAF)
        for word in left:
            self._builder.add(Leaf(ANY_TAG, word))

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
