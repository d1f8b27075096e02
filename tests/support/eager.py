"""Train without graphs, in tests that look at something else than the update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf


def train_eagerly(patch: pytest.MonkeyPatch) -> None:
    """Make no graph of the update and of the dev likelihood.

    For runs of up to three updates: tracing takes as long as about six eager ones.
    The search stays a graph, because its loop has many steps.
    """
    make_graph = tf.function

    def function(func: Callable | None = None, **options: Any) -> Callable:
        if func is None:
            return lambda func: function(func, **options)
        if getattr(func, "__name__", "") == "search":
            return make_graph(func, **options)
        return func

    patch.setattr(tf, "function", function)
