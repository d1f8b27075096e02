"""Attention to the source during a search, for the coverage penalty.

It is the attention of the last decoder layer, averaged over its heads, and over the
models of an ensemble.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID
from t2t_repro.decoding.beam_state import StepFunction
from t2t_repro.layers.attention_capture import capture_weights


class AttendingCache(TypedDict):
    """Cache of a step function that also returns its attention.

    Attributes:
        model: Cache of the model.
        attention: Attention of the last step, float32 `[rows, beam, source_length]`.
    """

    model: Any
    attention: KerasTensor


def with_attention(
    step_function: StepFunction, layers: Sequence[keras.layers.Layer]
) -> StepFunction:
    """Add the attention to the source to the cache of a step function.

    Args:
        step_function: Runs the layers.
        layers: Attention layers to average.

    Returns:
        A step function with an `AttendingCache`.
    """

    def step(
        ids: KerasTensor,
        position: KerasTensor,
        history: KerasTensor,
        cache: AttendingCache,
    ) -> tuple[KerasTensor, AttendingCache]:
        with capture_weights() as captured:
            logits, model = step_function(ids, position, history, cache["model"])
        attention = [ops.mean(captured[layer], axis=1) for layer in layers]
        return logits, {
            "model": model,
            "attention": ops.mean(ops.stack(attention), axis=0),
        }

    return step


def initial_coverage(inputs: KerasTensor, beam_size: int) -> KerasTensor:
    """Return the coverage before the first step: 0, and 1 at padding.

    Args:
        inputs: Source ids, int32 `[batch, source_length]`.
        beam_size: Number of hypotheses per sentence.

    Returns:
        float32 `[batch, beam_size, source_length]`.
    """
    is_padding = ops.cast(inputs == PAD_ID, "float32")
    return ops.repeat(is_padding[:, None, :], beam_size, axis=1)
