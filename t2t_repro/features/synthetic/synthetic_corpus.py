"""The synthetic corpus: sentence number i of a split is always the same.

A synchronous grammar draws an English tree and its German translation together.
The English sentence alone determines the German one: each word has one reading, and the
form determines the attachment. A hash of the English sentence determines its split, so
no sentence is in two splits.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from t2t_repro.features.synthetic import anaphora, sentence_patterns
from t2t_repro.features.synthetic.english import detokenize, leaves
from t2t_repro.features.synthetic.word_traits import Draw

_PATTERNS = (*sentence_patterns.PATTERNS, *anaphora.PATTERNS)
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
        english: The English text.
        german: The German text.
        tree: Penn Treebank brackets over the English tokens, punctuation included;
            `english.detokenize` turns its leaves into `english`.
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
    """Draw one sentence of the grammar."""
    drawn = draw.pick(_PATTERNS)(draw)
    tree = _finish_tree(drawn.english)
    return SyntheticSentence(
        english=detokenize(leaves(tree)),
        german=_finish_german(drawn.german),
        tree=tree,
    )


def split_of(english: str) -> str:
    """Return the only split that may hold a sentence: 5 % test, 5 % dev."""
    digest = hashlib.blake2b(english.encode(), digest_size=4).digest()
    return _HELD_OUT.get(int.from_bytes(digest, "big") % _SPLIT_MODULUS, "train")


def sentences(split: str, count: int) -> Iterator[SyntheticSentence]:
    """Yield the first `count` sentences of a split, each once.

    Each candidate is drawn from its own seed. Repeated candidates, and candidates of
    another split, are left out.

    Args:
        split: "train", "dev" or "test".
        count: Number of sentences.

    Raises:
        ValueError: If there is no such split.
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
