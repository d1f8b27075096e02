"""The best tokens of a vocabulary, in few passes over the logits.

In beam search, the logits of a step are its largest tensor: `batch * beam * vocab`
numbers. TensorFlow's `top_k` alone took longer on a CPU than the matrix product that
computes them.
"""

from __future__ import annotations

import math

import numpy as np
from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID

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
    """Return the same as `ops.top_k`, several times as fast for many columns.

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
