"""Convert trees to the symbols that a model writes, and any symbols to a tree."""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Sequence
from typing import Literal

from t2t_repro.features.parsing.trees import ANY_TAG, Leaf, Tree, TreeBuilder, walk
from t2t_repro.text.tokenizer import SPECIAL_SYMBOLS


def leaf_partners(written: Sequence[str], wanted: Sequence[str]) -> list[int | None]:
    """Align with the fewest insertions, deletions and substitutions (Levenshtein).

    Ties between alignments are broken element by element, beginning with the last one
    of `written`. Its partner is the first possible of these: the last element of
    `wanted` before the partners already chosen; no partner; an earlier element, the
    nearest first.

    Args:
        written: The sequence to align.
        wanted: The sequence to align it with.

    Returns:
        For each element of `written` the index in `wanted` of its partner, which may be
        a different element, or None if it has no partner. Indices ascend.
    """
    edits = _edits(written, wanted)
    partners: list[int | None] = [None] * len(written)
    i, j = len(written), len(wanted)
    while i and j:
        if edits[i][j] == edits[i - 1][j - 1] + (written[i - 1] != wanted[j - 1]):
            i, j = i - 1, j - 1
            partners[i] = j
        elif edits[i][j] == edits[i - 1][j] + 1:
            i -= 1
        else:
            j -= 1
    return partners


def _edits(written: Sequence[str], wanted: Sequence[str]) -> list[list[int]]:
    """Return the edit distances of prefixes: [i][j] of the first i and first j."""
    edits = [[*range(len(wanted) + 1)]]
    for i, one in enumerate(written, start=1):
        above, row = edits[-1], [i]
        for j, other in enumerate(wanted, start=1):
            replaced = above[j - 1] + (one != other)
            row.append(min(replaced, above[j] + 1, row[-1] + 1))
        edits.append(row)
    return edits


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
    of the words (`leaf_partners`). Faults are repaired:

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
        return leaf_partners([symbol[0] for symbol in written], [*map(initial, words)])
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
