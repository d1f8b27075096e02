"""The length penalty of the search, for numbers and tensors; imports no framework."""

from __future__ import annotations

from typing import Any


def length_penalty(length: Any, alpha: float) -> Any:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14).

    Args:
        length: Number of tokens, including EOS: a number, or an array or tensor of
            floats.
        alpha: Exponent.

    Returns:
        The penalty, of the shape of `length`.
    """
    return ((5.0 + length) / 6.0) ** alpha
