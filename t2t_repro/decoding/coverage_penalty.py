"""The coverage penalty of GNMT (Wu et al. 2016, section 7).

Equation (14): s(Y, X) = log P(Y|X) / lp(Y) + cp(X; Y); for lp, see `length_penalty`.
"""

from __future__ import annotations

from keras import KerasTensor, ops

# Attention is never exactly 0 in theory. In float32 it may be, and log(0) must not
# make a score infinite.
_LEAST_COVERAGE = 1e-30


def coverage_penalty(coverage: KerasTensor, beta: float) -> KerasTensor:
    """Return cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1)) (Wu et al. 2016, eq. 14).

    Args:
        coverage: sum_j p_ij, the attention that each source token i has received from
            the target tokens j so far; at least 1 at padding, which then does not
            count. float32 `[..., source_length]`.
        beta: Factor.

    Returns:
        float32 `[...]`, at most 0.
    """
    covered = ops.clip(coverage, _LEAST_COVERAGE, 1.0)
    return beta * ops.sum(ops.log(covered), axis=-1)
