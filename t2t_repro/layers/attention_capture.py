"""Capture attention weights while a model runs, without changing what it returns.

Every attention layer passes its weights to `keep_weights`. Nothing happens there
unless the call runs inside `capture_weights`::

    with capture_weights() as captured:
        model(features, training=False)
    weights = captured[model.encoder.layers[0].self_attention]

Inside a traced function, both belong to the function: it opens `capture_weights`, runs
the model, and returns the weights as outputs. A function that was traced outside
a capture contains none of this, so training and decoding pay nothing.

Differs from tensor2tensor (`visualization/visualization.py`), which finds the tensors
by hard-coded names of the graph and misses every attention that is named otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import keras
from keras import KerasTensor

CapturedWeights = dict[keras.layers.Layer, KerasTensor]

_captured: ContextVar[CapturedWeights | None] = ContextVar("captured", default=None)


@contextlib.contextmanager
def capture_weights() -> Iterator[CapturedWeights]:
    """Collect the attention weights of all layers that run inside the block.

    Yields:
        Dict from attention layer to its weights before dropout, float32
        `[batch, num_heads, query_length, key_length]`. It fills while the layers run; a
        layer that runs twice leaves its last weights.
    """
    captured: CapturedWeights = {}
    token = _captured.set(captured)
    try:
        yield captured
    finally:
        _captured.reset(token)


def keep_weights(layer: keras.layers.Layer, weights: Callable[[], KerasTensor]) -> None:
    """Keep the weights of an attention layer if a capture is active.

    Args:
        layer: The attention layer.
        weights: Function that returns its weights, float32
            `[batch, num_heads, query_length, key_length]`. It is called only if a
            capture is active, so it may compute a form that the layer does not need.
    """
    captured = _captured.get()
    if captured is not None:
        captured[layer] = weights()
