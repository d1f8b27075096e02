"""Several models with the same vocabularies as one model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import KerasTensor, ops


class Ensemble(keras.Model):
    """A model whose probabilities are the mean of several models' probabilities.

    The mean is linear, the default of fairseq and Sockeye. It has the methods of a
    `Transformer` that scoring and searching need. Its logits are the logarithms of the
    mean probabilities.

    Args:
        models: `Transformer`s with the same vocabularies; sizes and layers may differ.

    Attributes:
        members: The models; see `decoding.translator.members`.

    Raises:
        ValueError: If there is no model, or vocabularies have different sizes.
    """

    def __init__(self, models: Sequence[keras.Model]) -> None:
        super().__init__()
        sizes = [(m.source_vocab_size, m.target_vocab_size) for m in models]
        if len(set(sizes)) != 1:
            raise ValueError(
                "`models` must have the same vocabularies. "
                f"Received: vocabularies of sizes {sizes}"
            )
        self.members = list(models)

    def call(
        self, features: dict[str, KerasTensor], training: bool | None = None
    ) -> KerasTensor:
        """Return the logarithms of the mean probabilities; see `Transformer`."""
        return mean_log_probs([m(features, training=training) for m in self.members])

    def initial_cache(self, inputs: KerasTensor) -> tuple[Any, ...]:
        """Return the initial cache of each model; see `Transformer.initial_cache`."""
        return tuple(model.initial_cache(inputs) for model in self.members)

    def softmax_columns(self) -> tuple[KerasTensor, ...]:
        """Return those of each model; see `Transformer.softmax_columns`."""
        return tuple(model.softmax_columns() for model in self.members)

    def decode_step(
        self,
        ids: KerasTensor,
        position: KerasTensor,
        history: KerasTensor,
        cache: tuple[Any, ...],
        append: bool = False,
        columns: tuple[KerasTensor, ...] | None = None,
    ) -> tuple[KerasTensor, tuple[Any, ...]]:
        """Predict the next token of every hypothesis; see `Transformer.decode_step`."""
        each = columns or (None,) * len(self.members)
        steps = [
            model.decode_step(ids, position, history, own, append, matrix)
            for model, own, matrix in zip(self.members, cache, each, strict=True)
        ]
        logits, caches = zip(*steps, strict=True)
        return mean_log_probs(logits), caches


def mean_log_probs(logits: Sequence[KerasTensor]) -> KerasTensor:
    """Return the logarithms of the mean of several models' probabilities.

    Args:
        logits: Logits of each model, `[..., vocab_size]`.

    Returns:
        float32 `[..., vocab_size]`.
    """
    log_probs = [ops.log_softmax(ops.cast(x, "float32"), axis=-1) for x in logits]
    mean = ops.logsumexp(ops.stack(log_probs), axis=0)
    return mean - math.log(len(logits))
