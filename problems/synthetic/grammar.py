"""The synthetic corpus: sentence number i of a split, for ever the same.

A synchronous grammar draws an English tree and its German translation together.
The English sentence alone decides its German (the words have one reading each,
attachment follows from the form), and a hash of it decides its split, so the
splits share no sentence.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import anaphora, questions
from . import sentences as statements
from .english import detokenize, leaves
from .phrases import Draw

_PATTERNS = (
    *statements.PATTERNS,
    *questions.PATTERNS,
    *anaphora.PATTERNS,
)
_SEED = 1
_HELD_OUT = {0: "test", 1: "dev"}
_SPLIT_MODULUS = 20
_FIRST_LEAF = re.compile(r" ([^() ]+)\)")
_COMMAS_AT_END = re.compile(r"(?: ,)+ ([.?])")
_COMMAS = re.compile(r"(?: ,)+")


@dataclass(frozen=True)
class SyntheticSentence:
    """A sentence, its translation and its constituency tree.

    Attributes:
        english: the English text.
        german: the German text.
        tree: Penn Treebank brackets over the English tokens, punctuation
            included; `english.detokenize` makes `english` of its leaves.
    """

    english: str
    german: str
    tree: str


def _finish_tree(tree: str) -> str:
    return _FIRST_LEAF.sub(lambda m: f" {m[1][0].upper()}{m[1][1:]})", tree, count=1)


def _finish_german(words: str) -> str:
    text = _COMMAS_AT_END.sub(r"\1", words)
    text = _COMMAS.sub(",", text).replace(" .", ".").replace(" ?", "?").lstrip()
    return text[0].upper() + text[1:]


def draw_sentence(draw: Draw) -> SyntheticSentence:
    """Draws one sentence of the grammar."""
    tree, words = draw.pick(_PATTERNS)(draw)
    tree = _finish_tree(tree)
    english = detokenize(leaves(tree))
    return SyntheticSentence(english, _finish_german(words), tree)


def split_of(english: str) -> str:
    """Returns the one split that may hold this sentence: 5 % test, 5 % dev."""
    digest = hashlib.blake2b(english.encode(), digest_size=4).digest()
    return _HELD_OUT.get(int.from_bytes(digest, "big") % _SPLIT_MODULUS, "train")


def sentences(split: str, count: int) -> Iterator[SyntheticSentence]:
    """Yields the first `count` sentences of a split, each once.

    Candidate number i is drawn from a seed of its own; candidates that belong to
    another split or came before are passed over.

    Args:
        split: "train", "dev" or "test".
        count: number of sentences.

    Raises:
        ValueError: if there is no such split.
    """
    if split not in ("train", "dev", "test"):
        raise ValueError(f"split must be train, dev or test. Received: split={split}")
    seen: set[str] = set()
    number = 0
    while len(seen) < count:
        sentence = draw_sentence(Draw(f"{split}-{_SEED}-{number}"))
        number += 1
        english = sentence.english
        if english not in seen and split_of(english) == split:
            seen.add(english)
            yield sentence
