"""The grammar of trees over the words of a source, in tokens.

A step of a search allows only tokens after which the hypothesis can still become a
whole tree within its limit of tokens. Every hypothesis that ends is therefore a tree,
and no tree within the limit is excluded. Log-probabilities do not change, so the search
compares hypotheses exactly as without a grammar.

The allowed tokens depend on the depth of a hypothesis, its innermost open constituent,
and the number of its leaves. All three are computed from its tokens, so the search
carries no further state.

The conditions are those on the actions of the top-down parser of Dyer et al. 2016
(arXiv:1602.07776), with a limit of tokens in place of one of depth. Rejecting tokens by
parsing each hypothesis at each step of a beam search: PICARD, Scholak et al. 2021
(arXiv:2109.05093).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from keras import KerasTensor, ops

from t2t_repro.constants import EOS_ID, NO_WORD, PAD_ID
from t2t_repro.features.parsing.tree_symbols import LeafForm, initial, is_leaf
from t2t_repro.features.parsing.trees import treebank_words
from t2t_repro.text.tokenizer import split_symbols

_NO_TOKEN = -1


@dataclasses.dataclass(frozen=True)
class BracketGrammar:
    """Trees that have one leaf per word of the source, in the order of the words.

    An output is a sequence of leaves and constituents. A constituent is an opening
    token, at least one leaf or constituent, and the closing token that belongs to the
    opening one. Several constituents may follow each other at the top, under a root
    that is not written.

    It is a `TargetGrammar` (`data/problem.py`) and consists of numbers alone,
    so that a search can follow it inside a graph. Tokens that it does not name occur in
    no output.

    Attributes:
        brackets: Each opening token and its closing token.
        leaves: Tokens that can be the leaf of a word, per kind of word; at least one
            for each kind.
        kind_by_byte: Kind of a word by its first byte in UTF-8, 256 numbers.

    Raises:
        ValueError: If a kind has no leaf, or there are not 256 bytes.
    """

    brackets: tuple[tuple[int, int], ...]
    leaves: tuple[tuple[int, ...], ...]
    kind_by_byte: tuple[int, ...]

    def __post_init__(self) -> None:
        if not all(self.leaves):
            raise ValueError(
                f"Every kind of word needs a leaf. Received: leaves={self.leaves}"
            )
        kinds = range(len(self.leaves))
        if len(self.kind_by_byte) != 256 or not set(self.kind_by_byte) <= set(kinds):
            raise ValueError(
                f"`kind_by_byte` must have 256 numbers below {len(self.leaves)}. "
                f"Received: {self.kind_by_byte}"
            )

    def word_kinds(self, source: str) -> list[int]:
        """Return the kind of each word of a source with white space between words."""
        return [
            self.kind_by_byte[word.encode("utf-8", "replace")[0]]
            for word in split_symbols(source)
        ]

    def word_kinds_in_graph(self, sources: tf.Tensor) -> tf.RaggedTensor:
        """Return the kinds of the words of `[batch]` strings, int32 `[batch, None]`."""
        words = tf.strings.split(sources)
        first_bytes = tf.io.decode_raw(
            tf.strings.substr(words.flat_values, 0, 1), tf.uint8, fixed_length=1
        )
        table = tf.constant(self.kind_by_byte, tf.int32)
        return words.with_flat_values(
            tf.gather(table, tf.cast(tf.reshape(first_bytes, [-1]), tf.int32))
        )

    def outside(
        self,
        ids: KerasTensor,
        position: KerasTensor,
        max_lengths: KerasTensor,
        word_kinds: KerasTensor,
        vocab_size: int,
    ) -> KerasTensor:
        """Return the tokens that cannot continue any tree within the limit.

        Each word costs at least a leaf, each open constituent its closing token, and
        the end EOS. Only an opening token makes this sum larger, so it is allowed only
        if the limit leaves room for one more closing token.

        For the arguments and the result, see `TargetGrammar.outside`.
        """
        tables = _Tables(self, vocab_size)
        parsed = _parse(tables, ids, position)
        num_words = ops.sum(ops.cast(word_kinds != NO_WORD, "int32"), axis=1)
        left = num_words[:, None] - parsed.num_leaves
        needed = ops.maximum(left, 0) + parsed.depth + 1
        fits = position + needed + 2 <= max_lengths[:, None]
        may_open = ops.logical_and(left > 0, fits)
        next_word = ops.clip(parsed.num_leaves, 0, ops.shape(word_kinds)[1] - 1)
        kinds = ops.take_along_axis(word_kinds, next_word, axis=1)
        table_row = 2 * kinds + 2 + ops.cast(may_open, "int32")
        outside = ops.take(tables.forbidden, ops.reshape(table_row, -1), axis=0)
        # After all words, an empty constituent comes from a forced prefix.
        may_close = ops.logical_or(ops.logical_not(parsed.just_opened), left <= 0)
        closing = ops.where(may_close, parsed.closing, _NO_TOKEN)
        may_end = ops.logical_and(left <= 0, parsed.depth <= 0)
        last = ops.reshape(ops.where(may_end, EOS_ID, closing), (-1, 1))
        is_other = ops.arange(vocab_size, dtype="int32")[None, :] != last
        return ops.logical_and(outside, is_other)

    def words_written(self, vocab_size: int) -> np.ndarray:
        """Return 1 for leaves and 0 for other tokens, float32 `[vocab_size]`."""
        written = np.zeros(vocab_size, "float32")
        for leaves in self.leaves:
            written[list(leaves)] = 1.0
        return written


class _Tables:
    """Effects of each token, as arrays that become constants of a graph.

    Attributes:
        depth_change: int32 `[vocab_size]`: 1 opens, -1 closes, 0 does neither.
        is_leaf: int32 `[vocab_size]`, 1 for a leaf.
        closing: int32 `[vocab_size]`, the closing token of an opening one.
        forbidden: Boolean `[2 * (kinds + 1), vocab_size]`, tokens that are forbidden
            if closing and ending are. Row 2 * kind + 2 is for the kind of the next
            word, `NO_WORD` if there is none; the row after it allows to open.
    """

    def __init__(self, grammar: BracketGrammar, vocab_size: int) -> None:
        self.depth_change = np.zeros(vocab_size, "int32")
        self.is_leaf = grammar.words_written(vocab_size).astype("int32")
        self.closing = np.full(vocab_size, _NO_TOKEN, "int32")
        self.forbidden = np.ones((2 * len(grammar.leaves) + 2, vocab_size), "bool")
        for opening, closing in grammar.brackets:
            self.depth_change[opening] = 1
            self.depth_change[closing] = -1
            self.closing[opening] = closing
            self.forbidden[1::2, opening] = False
        for kind, leaves in enumerate(grammar.leaves):
            self.forbidden[2 * kind + 2 : 2 * kind + 4, list(leaves)] = False


@dataclasses.dataclass(frozen=True)
class _Parsed:
    """The state of unfinished trees; all tensors are `[rows, beam]`.

    Attributes:
        depth: Number of open constituents, int32; negative only after a forced prefix.
        num_leaves: int32.
        closing: Token that closes the innermost constituent, int32, or -1.
        just_opened: Whether the last token is an opening one.
    """

    depth: KerasTensor
    num_leaves: KerasTensor
    closing: KerasTensor
    just_opened: KerasTensor


def _parse(tables: _Tables, ids: KerasTensor, position: KerasTensor) -> _Parsed:
    """Read the hypotheses; see `BracketGrammar.outside`."""
    length, vocab_size = ops.shape(ids)[2], len(tables.is_leaf)
    change = ops.take(tables.depth_change, ids, axis=0)
    depths = ops.cumsum(change, axis=-1)
    depth = depths[:, :, -1]
    # The innermost open constituent began at the last opening token that led to the
    # present depth. A later one at this depth would have closed it before.
    opened = ops.logical_and(change == 1, depths == depth[:, :, None])
    # Numbers that order tokens by place: 0 is no token, as PAD opens nothing.
    places = ops.arange(length, dtype="int32") * vocab_size + ids
    innermost = ops.max(ops.where(opened, places, PAD_ID), axis=-1) % vocab_size
    last = ops.take(ids, ops.maximum(position - 1, 0), axis=2)
    return _Parsed(
        depth=depth,
        num_leaves=ops.sum(ops.take(tables.is_leaf, ids, axis=0), axis=-1),
        closing=ops.take(tables.closing, innermost, axis=0),
        just_opened=ops.take(tables.depth_change, last, axis=0) == 1,
    )


def tree_grammar(entries: Sequence[str], leaves: LeafForm) -> BracketGrammar:
    """Return the grammar of the outputs that `from_symbols` need not repair.

    A word whose initial no leaf of the vocabulary has can get any leaf, which
    `from_symbols` then reports.

    Args:
        entries: The symbol of each token, the special ones first.
        leaves: The form of the leaves.

    Raises:
        ValueError: If no entry is a leaf.
    """
    tokens = {entry: token for token, entry in enumerate(entries)}
    closing = ((token, f"){entry[1:]}") for entry, token in tokens.items())
    brackets = tuple(
        (token, tokens[closes])
        for token, closes in closing
        if entries[token][0] == "(" and len(closes) > 1 and closes in tokens
    )
    every = tuple(token for entry, token in tokens.items() if is_leaf(entry))
    if leaves != "initial":
        return BracketGrammar(brackets, (every,), (0,) * 256)
    kinds = sorted({entries[token][0] for token in every})
    by_kind = [tuple(t for t in every if entries[t][0] == kind) for kind in kinds]
    number = {kind: index for index, kind in enumerate(kinds)}
    return BracketGrammar(
        brackets,
        (*by_kind, every),
        tuple(number.get(_initial_of_byte(byte), len(kinds)) for byte in range(256)),
    )


def _initial_of_byte(byte: int) -> str:
    """Return the initial of the words that begin with a byte of UTF-8."""
    # Only ASCII characters begin with a byte below 128; the others share an initial.
    character = chr(byte) if byte < 128 else "\N{LATIN SMALL LETTER E WITH ACUTE}"
    # A raw bracket begins with the character of `-LRB-`.
    words = treebank_words(character)
    return initial(words[0] if words else character)
