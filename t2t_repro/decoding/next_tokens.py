"""Constraints and sampling of the next tokens of a search.

`Constraints` forbid tokens, a `TargetGrammar` those that lead outside the outputs of a
problem. `Sampling` draws tokens at random. The best tokens are found in few passes over
the logits: in beam search, the logits of a step are its largest tensor,
`batch * beam * vocab` numbers, and TensorFlow's `top_k` alone took longer on a CPU than
the matrix product that computes them.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from keras import KerasTensor, ops

from t2t_repro.constants import EOS_ID, PAD_ID

if TYPE_CHECKING:  # an accelerator without SentencePiece searches, too
    from t2t_repro.data.problem import TargetGrammar


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
    grammar: TargetGrammar | None = None


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

    A forced prefix overrides all other constraints, and a grammar overrides those on
    lengths and repetitions. If these two forbid all tokens, EOS is allowed or, with a
    grammar, whatever the grammar allows.

    Args:
        constraints: Constraints other than the prefixes, if there are any.
        ids: Hypotheses, int32 `[rows, beam, max_length]`.
        position: Number of their tokens, int32 scalar.
        vocab_size: Number of tokens (V).
        max_lengths: Limits of the tokens, int32 `[rows]`.
        prefixes: See `outside_prefix`.
        word_kinds: See `TargetGrammar.outside`; needed with a grammar.

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
        forbidden = (
            repeats
            if forbidden is None
            else _forbid_repeats_and_early_end(repeats, forbidden)
        )
    if constraints.grammar is not None:
        outside = constraints.grammar.outside(
            ids, position, max_lengths, word_kinds, vocab_size
        )
        forbidden = (
            outside if forbidden is None else _combine_with_grammar(forbidden, outside)
        )
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


def _forbid_repeats_and_early_end(
    repeats: KerasTensor, early_end: KerasTensor
) -> KerasTensor:
    """Forbid repetitions and an early end, but allow EOS if nothing else is left."""
    tokens = ops.arange(repeats.shape[-1])
    is_other = ops.logical_and(tokens != PAD_ID, tokens != EOS_ID)
    left = ops.logical_and(is_other, ops.logical_not(repeats))
    any_left = ops.any(left, axis=-1, keepdims=True)
    return ops.logical_or(repeats, ops.logical_and(early_end, any_left))


def _combine_with_grammar(forbidden: KerasTensor, outside: KerasTensor) -> KerasTensor:
    """Forbid tokens outside the grammar, and others unless none would be left."""
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


# Below every reachable score; sums of it stay within the range of float32.
MINUS_INFINITY = -1e9

BLOCK_SIZE = 64  # tokens; 32 to 100 are about as fast for 8,000 tokens
SMALLEST_BLOCK = 8  # with smaller ones, sorting the blocks costs more than it saves


def top_log_probs(
    logits: KerasTensor,
    count: int,
    forbidden: KerasTensor | None = None,
    bonus: np.ndarray | None = None,
) -> tuple[KerasTensor, KerasTensor]:
    """Return the tokens with the highest probabilities or ranks, without PAD.

    Args:
        logits: float32 `[rows, vocab_size]`.
        count: Number of tokens per row.
        forbidden: Tokens whose log-probability becomes about `MINUS_INFINITY`; the
            others' do not change. Boolean, broadcastable to the logits.
        bonus: Numbers that change the order of the tokens: they rank by log-probability
            plus bonus. float32 `[vocab_size]`.

    Returns:
        Log-probabilities without the bonus, float32 `[rows, n]`, best token first, and
        tokens, int32 `[rows, n]`, where n is `count + 1` (or less for a tiny
        vocabulary): PAD may be among them, with `MINUS_INFINITY`. Of equal ones, the
        lower token comes first.
    """
    count = min(count + 1, logits.shape[-1])
    allowed = logits
    if forbidden is not None:
        allowed = ops.where(forbidden, MINUS_INFINITY, logits)
    if bonus is None:
        values, tokens = top_k(allowed, count)
    else:
        _, tokens = top_k(allowed + bonus, count)
        values = ops.take_along_axis(allowed, tokens, axis=-1)
    unchanged = forbidden is None and bonus is None
    highest = values[:, 0] if unchanged else ops.max(logits, axis=-1)
    log_probs = values - log_normalizer(logits, highest)[:, None]
    return ops.where(ops.equal(tokens, PAD_ID), MINUS_INFINITY, log_probs), tokens


def log_normalizer(logits: KerasTensor, highest: KerasTensor) -> KerasTensor:
    """Return the logarithm of the sum of exponentials.

    The probability of the best token is exp(highest) over that sum. The softmax is one
    fused pass over the logits, `logsumexp` four.

    Args:
        logits: float32 `[rows, vocab_size]`.
        highest: Highest logit of each row, float32 `[rows]`.

    Returns:
        float32 `[rows]`.
    """
    return highest - ops.log(ops.max(ops.softmax(logits, axis=-1), axis=-1))


def top_k(x: KerasTensor, count: int) -> tuple[KerasTensor, KerasTensor]:
    """Compute `ops.top_k`, several times as fast for many columns.

    The highest `count` numbers of a row are in the `count` blocks with the highest
    maxima. One pass finds the maxima, and only those blocks are sorted.

    Args:
        x: float32 `[rows, columns]`.
        count: Numbers per row.

    Returns:
        The highest numbers, float32 `[rows, count]`, in descending order, and their
        columns, int32 `[rows, count]`. Of equal numbers, the lower column comes first.
    """
    columns = x.shape[-1]
    size = _block_size(columns)
    num_blocks = columns // size
    if num_blocks <= count or size < SMALLEST_BLOCK:
        values, places = ops.top_k(x, count)
        return values, ops.cast(places, "int32")
    rows = ops.shape(x)[0]
    blocks = ops.reshape(x, (rows * num_blocks, size))
    maxima = ops.reshape(ops.max(blocks, axis=-1), (rows, num_blocks))
    _, chosen = ops.top_k(maxima, count)
    # In the order of their columns, so that equal numbers keep their order.
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=-1)
    first = ops.arange(rows, dtype="int32")[:, None]
    candidates = ops.take(blocks, first * num_blocks + chosen, axis=0)
    values, places = ops.top_k(ops.reshape(candidates, (rows, count * size)), count)
    places = ops.cast(places, "int32")
    block = ops.take(ops.reshape(chosen, (-1,)), first * count + places // size)
    return values, block * size + places % size


def _block_size(columns: int) -> int:
    """Return the divisor of the number of columns that is nearest to `BLOCK_SIZE`."""
    divisors = [size for size in range(1, columns + 1) if columns % size == 0]
    return min(divisors, key=lambda size: abs(math.log(size / BLOCK_SIZE)))


ALL_TOKENS = -1  # value of `top_k`, as in tensor2tensor


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Distribution that tokens are drawn from.

    The three are applied in this order, as in Hugging Face's `generate`.

    Attributes:
        temperature: Divisor of the logits.
        top_k: Number of most probable tokens to draw from; -1 means all.
        top_p: Only the fewest most probable tokens whose probabilities sum to at least
            this are drawn; 1 means all.
    """

    temperature: float = 1.0
    top_k: int = ALL_TOKENS
    top_p: float = 1.0


def sample(
    logits: KerasTensor,
    uniform: KerasTensor,
    sampling: Sampling,
    forbidden: KerasTensor | None = None,
) -> tuple[KerasTensor, KerasTensor]:
    """Draw a token for each row, by inversion of the cumulative distribution.

    Args:
        logits: float32 `[rows, vocab_size]`.
        uniform: A number in [0, 1) per row, float64 `[rows]`.
        sampling: Distribution to draw from.
        forbidden: Boolean, True = never draw, broadcastable to the logits. PAD is never
            drawn either.

    Returns:
        Tokens, int32 `[rows]`, and their log-probabilities in the model's distribution,
        float32 `[rows]`, which `sampling` and `forbidden` do not change;
        `MINUS_INFINITY` if all tokens are forbidden.
    """
    allowed = _lower_forbidden(logits, forbidden)
    values, tokens = _candidates(allowed, sampling)
    cumulative = ops.cumsum(_weights(values, sampling), axis=-1)
    wanted = uniform[:, None] * cumulative[:, -1:]
    place = ops.sum(ops.cast(cumulative <= wanted, "int32"), axis=-1, keepdims=True)
    token = place if tokens is None else ops.take_along_axis(tokens, place, axis=-1)
    log_normalizers = log_normalizer(logits, ops.max(logits, axis=-1))
    chosen = ops.take_along_axis(allowed, token, axis=-1)[:, 0]
    return token[:, 0], ops.maximum(chosen - log_normalizers, MINUS_INFINITY)


# Of temperatures and of sums of probabilities; closer to 0, computations overflow.
_LEAST = 1e-12


def _weights(values: KerasTensor, sampling: Sampling) -> KerasTensor:
    """Return numbers in proportion to the probabilities, float64 `[rows, n]`.

    In float32, rare tokens would be lost in cumulative sums.
    """
    values = ops.cast(values, "float64") / max(sampling.temperature, _LEAST)
    weights = ops.exp(values - ops.max(values, axis=-1, keepdims=True))
    if sampling.top_p == 1.0:
        return weights
    before = ops.cumsum(weights, axis=-1) - weights
    enough = max(sampling.top_p, _LEAST) * ops.sum(weights, axis=-1, keepdims=True)
    return ops.where(before < enough, weights, 0.0)


def _lower_forbidden(logits: KerasTensor, forbidden: KerasTensor | None) -> KerasTensor:
    """Lower the logits of PAD and of forbidden tokens."""
    is_forbidden = (ops.arange(logits.shape[-1]) == PAD_ID)[None, :]
    if forbidden is not None:
        is_forbidden = ops.logical_or(is_forbidden, forbidden)
    return ops.where(is_forbidden, MINUS_INFINITY, logits)


def _candidates(
    logits: KerasTensor, sampling: Sampling
) -> tuple[KerasTensor, KerasTensor | None]:
    """Return the logits to draw from, and their tokens; None for the whole vocabulary.

    They are in descending order if there is a limit.
    """
    vocab_size = logits.shape[-1]
    if sampling.top_k == ALL_TOKENS and sampling.top_p == 1.0:
        return logits, None
    count = vocab_size if sampling.top_k == ALL_TOKENS else sampling.top_k
    return top_k(logits, min(count, vocab_size))
