"""Trees as the symbols that a parser writes, and a tree of whatever it has written.

The form is that of Vinyals et al. 2015, "Grammar as a Foreign Language":
`(S (NP XX )NP (VP XX )VP )S` for (S (NP (NNP John)) (VP (VBZ runs))), the words left
out. Differs from tensor2tensor (`wsj_parsing.py: words_and_tags_from_wsj_tree`), which
writes `S NP NNP /NP VP VBZ /VP /S`: here a bracket and a part of speech cannot be
mistaken for each other.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Sequence
from typing import Literal

from t2t_repro.text.alignment import align
from t2t_repro.text.symbols import SPECIAL_SYMBOLS
from t2t_repro.text.trees import ANY_TAG, Leaf, Tree, TreeBuilder, walk

# How a leaf is written: `XX`, `NNP`, or `j/NNP`, the last with its word's initial.
LeafForm = Literal["any", "tag", "initial"]
_OTHER_INITIAL = "*"

# What may be wrong with the symbols that a model writes.
LEAF_WITHOUT_WORD = "leaf without a word"
WORD_WITHOUT_LEAF = "word without a leaf"
OTHER_WORD = "leaf with another word's initial"
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


def to_symbols(tree: Tree, *, leaves: LeafForm = "any") -> list[str]:
    """Gives the symbols of a tree.

    Args:
        tree: the tree.
        leaves: how its leaves are written.
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
    return leaf.tag if form == "tag" else f"{_initial(leaf.word)}/{leaf.tag}"


def _tag(symbol: str, form: LeafForm) -> str:
    """Gives the part of speech of a written leaf, ANY_TAG if there is none."""
    return (symbol[2:] if form == "initial" else symbol) or ANY_TAG


def _initial(word: str) -> str:
    """Gives a word's first character in lower case, all digits as 0."""
    first = word[0]
    if first in string.digits:
        return "0"
    return first.lower() if first.isascii() else _OTHER_INITIAL


def from_symbols(
    symbols: Sequence[str], words: Sequence[str], *, leaves: LeafForm = "any"
) -> RepairedTree:
    """Makes a tree over the words, whatever the symbols are.

    The k-th leaf takes the k-th word; leaves with initials take the words with which
    they have most of them in common. Leaves without a word are dropped; words without a
    leaf stand behind the leaf before them, and behind the last one they hang on the
    root. A bracket that closes another label closes the innermost constituent; one that
    closes nothing gets its opening bracket at the beginning, as in Vinyals et al. 2015,
    and open ones are closed behind the last leaf. Constituents without a word vanish.

    Args:
        symbols: what a model has written.
        words: of the sentence.
        leaves: how leaves were written for the model to learn.
    """
    repair = _Repair(words, leaves, _places(symbols, words, leaves))
    for symbol in symbols:
        repair.take(symbol)
    return repair.finish()


def _places(
    symbols: Sequence[str], words: Sequence[str], leaves: LeafForm
) -> list[int | None]:
    """Gives the word that each leaf takes, by its number; None where it is dropped."""
    written = [symbol for symbol in symbols if _is_leaf(symbol)]
    if leaves == "initial":
        return align([symbol[0] for symbol in written], [*map(_initial, words)])
    return [k if k < len(words) else None for k in range(len(written))]


def _is_leaf(symbol: str) -> bool:
    return symbol[0] not in "()" and symbol not in SPECIAL_SYMBOLS


class _Repair:
    """Symbols read so far, and what was wrong with them.

    Args:
        words: of the sentence.
        leaves: how leaves are written.
        places: number of the word that each leaf takes, ascending; None = dropped.
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
        if _is_leaf(symbol):
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
        self._hang_words_before(len(self._words))
        return RepairedTree(self._builder.build(), tuple(self._faults))

    def _note(self, fault: str) -> None:
        self._faults[fault] = None

    def _add(self, symbol: str) -> None:
        place = self._places.pop()
        if place is None:
            self._note(LEAF_WITHOUT_WORD)
            return
        self._hang_words_before(place)
        word = self._words[place]
        if self._leaves == "initial" and symbol[0] != _initial(word):
            self._note(OTHER_WORD)
        self._builder.add(Leaf(_tag(symbol, self._leaves), word))
        following = [place for place in self._places if place is not None]
        if following:
            self._hang_words_before(following[-1])

    def _hang_words_before(self, end: int) -> None:
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
