"""Tokens that a hypothesis must not continue with.

The search forbids them after it has computed log-probabilities, so scores stay the
model's. PAD is never generated and needs no mask here.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from keras import KerasTensor, ops

from t2t_repro.constants import EOS_ID, PAD_ID
from t2t_repro.decoding.grammar import outside_grammar

if TYPE_CHECKING:
    # At run time, the search needs no tokenizer.
    from t2t_repro.text.bracket_grammar import BracketGrammar


@dataclasses.dataclass(frozen=True)
class Constraints:
    """Constraints on every hypothesis.

    Attributes:
        min_length: Least number of tokens before EOS; 0 means no constraint.
        no_repeat_ngram_size: Length of the n-grams of tokens that a hypothesis may
            contain only once; 0 means no constraint.
        grammar: Grammar of every hypothesis; None means any.
    """

    min_length: int = 0
    no_repeat_ngram_size: int = 0
    grammar: BracketGrammar | None = None


def forbidden_tokens(
    constraints: Constraints | None,
    ids: KerasTensor,
    position: KerasTensor,
    vocab_size: int,
    max_lengths: KerasTensor,
    prefixes: KerasTensor | None = None,
    word_kinds: KerasTensor | None = None,
) -> KerasTensor | None:
    """Return the tokens that hypotheses must not continue with.

    A forced prefix overrides the other constraints, and a grammar those on lengths and
    repetitions. If these two leave no token, EOS is allowed, or with a grammar whatever
    it allows.

    Args:
        constraints: Constraints other than the prefixes, if there are any.
        ids: Hypotheses, int32 `[rows, beam, max_length]`.
        position: Number of their tokens, int32 scalar.
        vocab_size: Number of tokens (V).
        max_lengths: Limits of the tokens, int32 `[rows]`.
        prefixes: See `outside_prefix`.
        word_kinds: See `outside_grammar`; needed with a grammar.

    Returns:
        Boolean, broadcastable to `[rows * beam, vocab_size]`, True = forbidden, or None
        without any constraint.
    """
    forbidden = None
    constraints = constraints or Constraints()
    if constraints.min_length:
        forbidden = end_too_early(position, constraints.min_length, vocab_size)
    if constraints.no_repeat_ngram_size:
        repeats = repeated_ngrams(
            ids, position, constraints.no_repeat_ngram_size, vocab_size
        )
        forbidden = repeats if forbidden is None else _or_end(repeats, forbidden)
    if constraints.grammar is not None:
        outside = outside_grammar(
            constraints.grammar,
            ids,
            position,
            max_lengths,
            word_kinds,
            vocab_size,
        )
        forbidden = outside if forbidden is None else _if_any_left(forbidden, outside)
    if prefixes is None:
        return forbidden
    others, is_forced = outside_prefix(prefixes, position, ids.shape[1], vocab_size)
    return others if forbidden is None else ops.where(is_forced, others, forbidden)


def end_too_early(
    position: KerasTensor, min_length: int, vocab_size: int
) -> KerasTensor:
    """Forbid EOS before the minimum length.

    As in fairseq (`--min-len`) and CTranslate2 (`min_decoding_length`), EOS does not
    count.

    Args:
        position: Number of tokens of the hypotheses, int32 scalar.
        min_length: Least number of tokens before EOS.
        vocab_size: Number of tokens.

    Returns:
        Boolean `[1, vocab_size]`, True = forbidden.
    """
    is_end = ops.arange(vocab_size) == EOS_ID
    return ops.logical_and(is_end, position < min_length)[None, :]


def repeated_ngrams(
    ids: KerasTensor, position: KerasTensor, size: int, vocab_size: int
) -> KerasTensor:
    """Forbid every token that would complete an n-gram for the second time.

    Paulus et al. 2017 (section 2.5); fairseq `--no-repeat-ngram-size`.

    Args:
        ids: Hypotheses, int32 `[rows, beam, max_length]`.
        position: Number of their tokens, int32 scalar.
        size: Length of the n-grams (n).
        vocab_size: Number of tokens.

    Returns:
        Boolean `[rows * beam, vocab_size]`, True = forbidden.
    """
    length = ops.shape(ids)[2]
    padded = ops.pad(ids, [[0, 0], [0, 0], [0, size - 1]], constant_values=PAD_ID)
    # Place i is True if an n-gram begins there whose first n - 1 tokens are the last
    # n - 1 tokens of the hypothesis.
    begins = ops.broadcast_to(ops.arange(length) + size - 1 < position, ops.shape(ids))
    for k in range(size - 1):
        last = ops.take(ids, ops.maximum(position - size + 1 + k, 0), axis=2)
        begins = ops.logical_and(
            begins, padded[:, :, k : k + length] == last[..., None]
        )
    completing = padded[:, :, size - 1 : size - 1 + length]
    tokens = ops.reshape(ops.where(begins, completing, PAD_ID), (-1, length))
    return _as_mask(tokens, vocab_size)


def _as_mask(tokens: KerasTensor, vocab_size: int) -> KerasTensor:
    """Turn tokens `[rows, n]` into a boolean mask `[rows, vocab_size]`."""
    rows, n = ops.shape(tokens)
    row = ops.broadcast_to(ops.arange(rows, dtype="int32")[:, None], (rows, n))
    places = ops.reshape(ops.stack([row, tokens], axis=-1), (-1, 2))
    nowhere = ops.zeros((rows, vocab_size), dtype="bool")
    return ops.scatter_update(nowhere, places, ops.ones((rows * n,), dtype="bool"))


def _or_end(repeats: KerasTensor, early_end: KerasTensor) -> KerasTensor:
    """Forbid repetitions and an early end, but allow EOS if nothing else is left."""
    tokens = ops.arange(repeats.shape[-1])
    is_other = ops.logical_and(tokens != PAD_ID, tokens != EOS_ID)
    left = ops.logical_and(is_other, ops.logical_not(repeats))
    any_left = ops.any(left, axis=-1, keepdims=True)
    return ops.logical_or(repeats, ops.logical_and(early_end, any_left))


def _if_any_left(forbidden: KerasTensor, outside: KerasTensor) -> KerasTensor:
    """Forbid what is outside the grammar, and the rest unless nothing else is left."""
    both = ops.logical_or(forbidden, outside)
    none_left = ops.all(both, axis=-1, keepdims=True)
    return ops.where(none_left, outside, both)


def outside_prefix(
    prefixes: KerasTensor, position: KerasTensor, beam_size: int, vocab_size: int
) -> tuple[KerasTensor, KerasTensor]:
    """Forbid all tokens but the prefix's.

    Args:
        prefixes: Tokens that the hypotheses of a row must begin with, int32
            `[rows, n]`, padded with PAD_ID. The last column has only padding.
        position: Number of tokens of the hypotheses, int32 scalar.
        beam_size: Number of hypotheses per row.
        vocab_size: Number of tokens.

    Returns:
        Boolean `[rows * beam_size, vocab_size]`, True = forbidden, and boolean
        `[rows * beam_size, 1]`, whether the prefix decides.
    """
    column = ops.minimum(position, ops.shape(prefixes)[1] - 1)
    forced = ops.repeat(ops.take(prefixes, column, axis=1), beam_size)[:, None]
    is_forced = forced != PAD_ID
    is_other = ops.arange(vocab_size, dtype="int32")[None, :] != forced
    return ops.logical_and(is_forced, is_other), is_forced
