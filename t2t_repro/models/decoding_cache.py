"""State that a model keeps while it decodes one position at a time."""

from __future__ import annotations

from typing import TypedDict

from keras import KerasTensor

from t2t_repro.layers.decoder_layer import LayerCache


class DecodingCache(TypedDict):
    """State of the decoder between two steps.

    Attributes:
        layers: Keys and values of every decoder layer.
        memory_mask: Boolean `[batch, 1, 1, source_length]`.
    """

    layers: list[LayerCache]
    memory_mask: KerasTensor
