"""Keep every hypothesis of a search inside a grammar of trees over the source's words.

At each step, only those tokens are allowed with which the hypothesis can still become a
whole tree within its limit of tokens. Every hypothesis that ends is therefore a tree,
and no tree within the limit is excluded. Log-probabilities do not change, so the search
compares hypotheses exactly as without a grammar.

What a hypothesis may continue with depends on its depth, its innermost open
constituent, and the number of its leaves. All three are computed from its tokens, so
the search carries no further state.

The conditions are those on the actions of the top-down parser of Dyer et al. 2016
(arXiv:1602.07776), with a limit of tokens in place of one of depth. Rejecting tokens by
parsing each hypothesis at each step of a beam search: PICARD, Scholak et al. 2021
(arXiv:2109.05093).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from keras import KerasTensor, ops

from t2t_repro.constants import EOS_ID, PAD_ID

if TYPE_CHECKING:
    # At run time, the search needs no tokenizer.
    from t2t_repro.text.bracket_grammar import BracketGrammar

# Of `word_kinds`: no word.
NO_WORD = -1
_NO_TOKEN = -1


def outside_grammar(
    grammar: BracketGrammar,
    ids: KerasTensor,
    position: KerasTensor,
    max_lengths: KerasTensor,
    word_kinds: KerasTensor,
    vocab_size: int,
) -> KerasTensor:
    """Forbid every token that no tree within the limit continues with.

    Each word costs at least a leaf, each open constituent its closing token, and the
    end EOS. Only an opening token makes this sum larger, so it is allowed only if the
    limit leaves room for one more closing token.

    Args:
        grammar: The grammar.
        ids: Hypotheses, int32 `[rows, beam, max_length]`, padded with PAD_ID.
        position: Number of their tokens, int32 scalar.
        max_lengths: Limits of the tokens with EOS, int32 `[rows]`.
        word_kinds: Kinds of the words of the sources, int32 `[rows, n]`, padded with
            `NO_WORD`. The last column has only padding.
        vocab_size: Number of tokens.

    Returns:
        Boolean `[rows * beam, vocab_size]`, True = forbidden.
    """
    tables = _Tables(grammar, vocab_size)
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


class _Tables:
    """What each token does, as arrays that become constants of a graph.

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
        self.is_leaf = np.zeros(vocab_size, "int32")
        self.closing = np.full(vocab_size, _NO_TOKEN, "int32")
        self.forbidden = np.ones((2 * len(grammar.leaves) + 2, vocab_size), "bool")
        for opening, closing in grammar.brackets:
            self.depth_change[opening] = 1
            self.depth_change[closing] = -1
            self.closing[opening] = closing
            self.forbidden[1::2, opening] = False
        for kind, leaves in enumerate(grammar.leaves):
            for leaf in leaves:
                self.is_leaf[leaf] = 1
                self.forbidden[2 * kind + 2 : 2 * kind + 4, leaf] = False


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
    """Read the hypotheses; see `outside_grammar`."""
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
