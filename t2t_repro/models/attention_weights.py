"""All attention weights of a Transformer for a batch of sentence pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import keras
from keras import KerasTensor, ops

from t2t_repro.errors import UserError
from t2t_repro.layers.attention import CapturedWeights, capture_weights
from t2t_repro.models.transformer import Transformer


class AttentionWeights(NamedTuple):
    """Attention weights of a model, float32, and its predictions.

    A row of weights sums to one over the keys. Padding and later target positions have
    exactly zero weight as keys. Rows of padding have no meaning.

    Attributes:
        logits: `[batch, target_length, target_vocab_size]`.
        encoder_self: `[batch, layer, head, source_length, source_length]`.
        decoder_self: `[batch, layer, head, target_length, target_length]`. Key j is the
            token that the decoder reads at position j: target j - 1.
        memory: Attention over the encoder's output,
            `[batch, layer, head, target_length, source_length]`.
        encoder_parameters: Attention over parameters in the encoder, `[batch, layer,
            head, source_length, memory_rows]`; None if the model has feed-forward
            networks.
        decoder_parameters: The same in the decoder.
    """

    logits: KerasTensor
    encoder_self: KerasTensor
    decoder_self: KerasTensor
    memory: KerasTensor
    encoder_parameters: KerasTensor | None
    decoder_parameters: KerasTensor | None


def attention_weights(
    model: Transformer, features: dict[str, KerasTensor]
) -> AttentionWeights:
    """Run a model on sentence pairs and return all its attention weights.

    Args:
        model: A built model.
        features: "inputs" and "targets"; see `Transformer`.

    Raises:
        UserError: If it is not a `Transformer`, whose attention layers are known, or an
            attention layer does not call `keep_weights`.
    """
    if not isinstance(model, Transformer):
        raise UserError(
            f"received a model of {type(model).__name__}, expected a Transformer: only "
            "its attention can be shown and exported."
        )
    with capture_weights() as captured:
        logits = model(features, training=False)
    encoder, decoder = model.encoder.layers, model.decoder.layers
    return AttentionWeights(
        logits=logits,
        encoder_self=_stack(captured, [layer.self_attention for layer in encoder]),
        decoder_self=_stack(captured, [layer.self_attention for layer in decoder]),
        memory=_stack(captured, [layer.memory_attention for layer in decoder]),
        encoder_parameters=_stack_parameters(captured, encoder),
        decoder_parameters=_stack_parameters(captured, decoder),
    )


def _stack(
    captured: CapturedWeights, layers: Sequence[keras.layers.Layer]
) -> KerasTensor:
    """Stack the weights of layers, `[batch, layer, head, query, key]`."""
    for layer in layers:
        if layer not in captured:
            raise UserError(
                f"{type(layer).__name__} does not show its attention weights: its "
                "`call` must call `keep_weights` of t2t_repro.layers.attention."
            )
    return ops.stack([captured[layer] for layer in layers], axis=1)


def _stack_parameters(
    captured: CapturedWeights, layers: Sequence[keras.layers.Layer]
) -> KerasTensor | None:
    """Stack the weights of attention over parameters, or return None without any."""
    networks = [layer.feed_forward for layer in layers]
    if any(network not in captured for network in networks):
        return None
    return _stack(captured, networks)
