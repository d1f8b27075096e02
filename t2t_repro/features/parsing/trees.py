"""Constituency trees in Penn Treebank brackets.

A tree is a list of leaves and the spans of its constituents. Nothing
here recurses, so trees may be nested to any depth.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

ROOT = "TOP"
ANY_TAG = "XX"
_ROOTS = (ROOT, "ROOT", "S1")
_TRACE = "-NONE-"

_PIECE = re.compile(r"[()]|[^ \t\n\r\f\v()]+")
_INDEX = re.compile(r"[-=][0-9]+$")
_WORD = re.compile(r"[^ \t\n\r\f\v]+")


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A word and its part of speech, both without brackets."""

    tag: str
    word: str


@dataclasses.dataclass(frozen=True)
class Constituent:
    """A labelled span of leaves from `start` to `end` - 1; never empty."""

    label: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Tree:
    """The tree of a sentence.

    Attributes:
        leaves: Words in order, with their parts of speech.
        constituents: Constituents in preorder: an outer one before its inner ones.
            The root, which spans everything and means nothing, is left out.
    """

    leaves: tuple[Leaf, ...]
    constituents: tuple[Constituent, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words in order."""
        return tuple(leaf.word for leaf in self.leaves)

    def __str__(self) -> str:
        """The tree on one line: `(TOP (S (NP (NNP John)) (VP (VBZ runs))))`."""
        pieces = [f"({ROOT}"]
        for event in walk(self):
            if isinstance(event, Leaf):
                pieces.append(f" ({event.tag} {event.word})")
            elif event.opens:
                pieces.append(f" ({event.label}")
            else:
                pieces.append(")")
        return "".join([*pieces, ")"])


@dataclasses.dataclass(frozen=True)
class Bracket:
    """The beginning or the end of a constituent."""

    label: str
    opens: bool


def treebank_words(text: str) -> list[str]:
    """Split a sentence into words at ASCII white space.

    Brackets become `-LRB-` and `-RRB-`, as in the Penn Treebank.
    """
    return _WORD.findall(text.replace("(", "-LRB-").replace(")", "-RRB-"))


def walk(tree: Tree) -> Iterator[Bracket | Leaf]:
    """Yield the brackets and leaves of a tree from left to right, without the root."""
    waiting = list(reversed(tree.constituents))
    inside: list[Constituent] = []
    for index, leaf in enumerate(tree.leaves):
        while waiting and waiting[-1].start == index:
            inside.append(waiting.pop())
            yield Bracket(inside[-1].label, opens=True)
        yield leaf
        while inside and inside[-1].end == index + 1:
            yield Bracket(inside.pop().label, opens=False)


class TreeBuilder:
    """Builder of a tree from left to right.

    Attributes:
        leaves: Leaves so far.
    """

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self._found: list[Constituent | None] = []
        self._open: list[tuple[str, int, int]] = []

    @property
    def depth(self) -> int:
        """The number of open constituents."""
        return len(self._open)

    def open(self, label: str) -> None:
        """Begin a constituent."""
        self._open.append((label, len(self.leaves), len(self._found)))
        self._found.append(None)

    def add(self, leaf: Leaf) -> None:
        """Add a leaf to the innermost open constituent."""
        self.leaves.append(leaf)

    def close(self) -> tuple[str, bool]:
        """End the innermost constituent; drop it if it has no leaf.

        Returns:
            The label of the constituent, and whether it had a leaf.
        """
        label, start, place = self._open.pop()
        has_leaf = start < len(self.leaves)
        if has_leaf:
            self._found[place] = Constituent(label, start, len(self.leaves))
        return label, has_leaf

    def enclose(self, label: str) -> None:
        """Put all leaves so far, if any, into one constituent."""
        if self.leaves:
            self._found.insert(0, Constituent(label, 0, len(self.leaves)))

    def build(self) -> Tree:
        """Return the tree; no constituent may be open."""
        found = (constituent for constituent in self._found if constituent is not None)
        return Tree(tuple(self.leaves), tuple(found))


def read_trees(text: Iterable[str]) -> Iterator[tuple[int, Tree]]:
    """Read bracketed trees, each on one line or over several lines.

    Traces, and constituents that hold nothing else, are left out, as are brackets
    without a label and a root called TOP, ROOT or S1. Labels lose their function tags
    and indices (`NP-SBJ-1` becomes `NP`), parts of speech their indices.

    Args:
        text: The lines.

    Yields:
        The number of the line on which a tree begins, and the tree. A tree that
        consists only of traces has no leaves.

    Raises:
        ValueError: If brackets do not match, or a leaf is not `(TAG word)`. The message
            names the line.
    """
    reader = _Reader()
    for number, line in enumerate(text, start=1):
        for piece in _PIECE.findall(line):
            tree = reader.take(piece, number)
            if tree is not None:
                yield reader.begun_on, tree
    reader.finish()


class _Reader:
    """The state of reading brackets.

    Attributes:
        begun_on: Number of the line on which the current tree began.
    """

    def __init__(self) -> None:
        self.begun_on = 0
        self._builder = TreeBuilder()
        # The words since the last opening bracket, or None after a closing one.
        self._atoms: list[str] | None = None

    def take(self, piece: str, line: int) -> Tree | None:
        """Read a bracket or a word, and return the tree that it completes, if any."""
        if piece == "(":
            if self._atoms is not None:
                self._begin_constituent(line)
            elif not self._builder.depth:
                self.begun_on = line
            self._atoms = []
            return None
        if piece != ")":
            self._add_atom(piece, line)
            return None
        self._end(line)
        return None if self._builder.depth else self._complete()

    def finish(self) -> None:
        """Raise ValueError if a tree is not complete."""
        if self._builder.depth or self._atoms is not None:
            raise ValueError(f"the tree that begins on line {self.begun_on} never ends")

    def _begin_constituent(self, line: int) -> None:
        label = " ".join(self._atoms or ())
        if " " in label:
            raise ValueError(
                f"line {line}: found ({label} (, expected one label between them"
            )
        self._builder.open(_strip_label(label))

    def _add_atom(self, piece: str, line: int) -> None:
        if self._atoms is None:
            raise ValueError(f"line {line}: found the word {piece!r} without its tag")
        self._atoms.append(piece)

    def _end(self, line: int) -> None:
        """Close a leaf or a constituent."""
        atoms, self._atoms = self._atoms, None
        if atoms is None and self._builder.depth:
            self._builder.close()
        elif atoms is None:
            raise ValueError(f"line {line}: found an extra closing bracket")
        elif len(atoms) == 2:
            tag, word = atoms
            if tag != _TRACE:
                self._builder.add(Leaf(_INDEX.sub("", tag), word))
        elif self._builder.depth or " ".join(atoms) not in ("", *_ROOTS):
            # Otherwise it is () or (TOP), a tree without a leaf.
            raise ValueError(
                f"line {line}: found ({' '.join(atoms)}), expected (TAG word)"
            )

    def _complete(self) -> Tree:
        tree, self._builder = self._builder.build(), TreeBuilder()
        kept = [c for c in tree.constituents if c.label]
        while kept and kept[0].label in _ROOTS:
            del kept[0]
        return Tree(tree.leaves, tuple(kept))


def _strip_label(label: str) -> str:
    """Return a label without function tags and indices; `-LRB-` stays as it is."""
    return label if label.startswith("-") else re.split("[-=]", label)[0]
