"""Base classes of the encoder's and the decoder's layers and stacks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import keras
from keras import KerasTensor

from t2t_repro.layers.options import LayerOptions, with_options


class LayerWithOptions(keras.layers.Layer):
    """A Keras layer that is configured by `LayerOptions`.

    Args:
        options: Sizes and kinds of the sublayers.
        name: Name of the layer.
        dtype: Dtype or dtype policy.
        trainable: Whether the layer's weights are trained.
    """

    def __init__(
        self,
        options: LayerOptions,
        *,
        name: str | None = None,
        dtype: object = None,
        trainable: bool = True,
    ) -> None:
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.options = options

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {"options": dataclasses.asdict(self.options)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        return cls(**with_options(config))


class Stack(LayerWithOptions):
    """Layers of one class, followed by a normalization under pre-norm.

    Args:
        options: Options of every layer.
        num_layers: Number of layers (N).
        name: Name of the stack.
        dtype: Dtype or dtype policy of the stack and its layers.
        trainable: Whether the stack's weights are trained.
    """

    layer_class: ClassVar[type[LayerWithOptions]]

    def __init__(
        self,
        options: LayerOptions,
        *,
        num_layers: int,
        name: str | None = None,
        dtype: object = None,
        trainable: bool = True,
    ) -> None:
        super().__init__(options, name=name, dtype=dtype, trainable=trainable)
        self.num_layers = num_layers
        self.layers = [
            self.layer_class(options, name=f"layer_{i}", dtype=self.dtype_policy)
            for i in range(num_layers)
        ]
        self.final_normalization = None
        # A post-norm layer ends in a normalization already.
        if options.norm == "pre":
            self.final_normalization = keras.layers.LayerNormalization(
                epsilon=options.norm_epsilon,
                name="final_normalization",
                dtype=self.dtype_policy,
            )

    def build(self, input_shape: object = None) -> None:
        for layer in self.layers:
            layer.build()
        if self.final_normalization is not None:
            self.final_normalization.build((None, None, self.options.hidden_size))

    def normalize(self, x: KerasTensor) -> KerasTensor:
        """Apply the final normalization, if there is one, to the last layer's output.

        Args:
            x: `[batch, length, hidden_size]`.

        Returns:
            `[batch, length, hidden_size]`.
        """
        return x if self.final_normalization is None else self.final_normalization(x)

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {"num_layers": self.num_layers}
