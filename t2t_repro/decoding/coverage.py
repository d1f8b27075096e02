"""The coverage penalty: a translation should attend to every token of its source.

Wu et al. 2016, equation 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import keras
from keras import KerasTensor, ops

from t2t_repro.constants import PAD_ID
from t2t_repro.decoding.beam_state import (
    BeamState,
    RowTensors,
    StepFunction,
    take_beams,
)
from t2t_repro.layers.attention import capture_weights

# Attention is never exactly 0 in theory. In float32 it may be, and log(0) must not
# make a score infinite.
_LEAST_COVERAGE = 1e-30


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


def with_coverage(
    state: BeamState, coverage: KerasTensor | None, parents: KerasTensor
) -> RowTensors:
    """Return the tensors of the features with the coverage of the new hypotheses.

    Args:
        state: State before the step.
        coverage: Coverage of the living hypotheses after the step, float32
            `[rows, beam, source_length]`, or None without a coverage penalty.
        parents: Place of each new hypothesis's parent, int32 `[rows, beam]`.
    """
    if coverage is None:
        return state.per_row
    before = state.per_row["coverage"]
    after = take_beams(coverage, parents)
    return {
        **state.per_row,
        "coverage": ops.where(state.done[:, None, None], before, after),
    }
